// Candidate rows of a step with rigid contact, at the configuration in its middle: contact points, end stops, dry friction of joints.
#pragma once

#include "../contact/response.hpp"
#include "system.hpp"

namespace sarrus {

namespace contact_steps {
/// Distance, relative to the smaller shape, below which a contact has a row from the first attempt on.
constexpr double near = 1e-3;
/// Speed of approach, relative to the speed that gravity adds in a step, below which hits do not bounce.
constexpr double bounce_speed = 3.0;
/// Penetration, relative to the smaller shape, above which a contact bounces before it touches, because a faster body would pass through.
constexpr double sink_limit = 0.1;
/// Distance, relative to the smaller shape, within which a contact point is treated as the same point as the nearest one of the last step.
constexpr double match_distance = 0.1;
/// Pairs of shapes are searched within this multiple of the distance that they move in a step, because an impact of a heavy body can double a speed.
constexpr double look_ahead = 2.0;
/// Motion [rad, sizes of the smaller shape] before and after the step's middle, for central differences of contact points.
constexpr double difference = 1e-5;
}  // namespace contact_steps

/// A row of one of two types: of a contact, whose impulse (n, t1, t2) and moments against rotation are in their friction cones; or along one
/// velocity, whose impulse is in an interval.
struct StepRow {
  double* J;  // 3 x nv, or nv
  bool contact, acts, bounces;
  double distance, shift, near, friction, low, high, guess[3];
  const RigidContact* element = nullptr;  // element whose states receive the impulses; or
  const TouchingPoint<double>* point = nullptr;  // contact point of two shapes
  const EndStop* stop = nullptr;  // force element to which a stop's row belongs; its force is multiplied by `sign`
  double sign = 1.0;
  // (3 x nv) Jacobian of the relative angular velocity along (n, t1, t2); null: no rotational friction
  double *turning = nullptr, torsional = 0.0, rolling = 0.0;
  double guessed_moment[3] = {0.0, 0.0, 0.0};
  Vec3<double> bend = zero3<double>();  // beta (contact_step.hpp): change of the contact's velocity (n, t1, t2) in half a step
  double expands = 0.0;  // coefficient of restitution if the contact bounces by Poisson's law; else 0
  int first = 0, second = 0;  // links, point and axes of a contact
  Vec3<double> position{};
  Mat3<double> axes{};
  // first row of the relative motion, about `about`, by which the rows of this pair of bodies are expressed; -1: they are not
  int combined = -1;
  Vec3<double> about{};

  int rows() const { return contact ? 3 : 1; }
  /// Call moment(first axis, number of axes, friction length [m]) for each friction moment of the contact: spinning about axis 0, rolling about axes
  /// 1 and 2.
  template <class Moment> void each_moment(Moment&& moment) const {
    if (torsional > 0.0) moment(0, 1, torsional);
    if (rolling > 0.0) moment(1, 2, rolling);
  }
};

class StepRows {
 public:
  /// `links`: kinematics of all links in uniform motion (uniform_links.hpp); only necessary if there are contacts.
  StepRows(System<double>& s, const AllJoints<double>& joints, double h, const SimulationState<double>& x,
           const Kinematics<double>& links)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), h_(h), nv_(s.tree.nv), kinematics_(links) {
    gravity_ = std::sqrt(dot(tree_.gravity, tree_.gravity));
    const ForceElements& elements = s_.plan.force_elements;
    const auto& contacts = elements.all<RigidContact>();
    const auto& shapes = elements.all<CollisionContacts>();
    const auto& stops = elements.all<EndStop>();
    const Kinematics<double>& k = kinematics_;
    const Touching<double> touching = shapes.empty() ? Touching<double>{} : touching_shapes(*shapes.begin(), k);
    if (touching.failed) s_.status = caller_failed;
    stand_ = arena_.take<Standing>(touching.count);
    note_standing(touching);
    row_ = arena_.take<StepRow>(contacts.count + touching.count + most_kept * stands_ + 2 * stops.count + s_.plan.frictions);
    for (const RigidContact& c : contacts) add_point(c, k);
    for (const TouchingPoint<double>& point : touching) add_point(*shapes.begin(), point, k);
    for (const EndStop& stop : stops) add_stop(stop, joints);
    for (int i = 0; i < s_.plan.frictions; ++i) add_friction(s_.plan.friction[i], joints);
  }

  StepRow* begin() { return row_; }
  StepRow* end() { return row_ + count_; }
  /// Add the Jacobian of the motion of a contact's first body relative to the second, at the point `at` of both bodies: six rows of J, angular first.
  void add_relative_motion(const StepRow& row, const Vec3<double>& at, double* J) const {
    const Mat3<double> world = Mat3<double>::Identity();
    for (const auto& [link, sign] : {std::pair{row.first, 1.0}, std::pair{row.second, -1.0}}) {
      add_turning_rows(tree_, kinematics_, link, world, sign, J);
      add_point_rows(tree_, kinematics_, link, at, world, sign, J + 3 * nv_);
    }
  }
  double approach(const StepRow& row, const double* v) const { return scalar_product(row.J, v, nv_); }

  /// Compute the generalised impulse (nv) of all contacts, from the estimates of their impulses and moments.
  const double* guessed(double* impulse) const {
    std::fill(impulse, impulse + nv_, 0.0);
    for (const StepRow* row = row_; row < row_ + count_; ++row)
      for (int r = 0; row->contact && r < 3; ++r) {
        if (row->guess[r] != 0.0) subtract_scaled(impulse, row->J + r * nv_, -row->guess[r], nv_);
        if (row->turning && row->guessed_moment[r] != 0.0)
          subtract_scaled(impulse, row->turning + r * nv_, -row->guessed_moment[r], nv_);
      }
    return impulse;
  }

  /// Activate rows that can come into contact in this step at the velocities v. Returns the largest speed along all rows.
  double note_nearing(const double* v) {
    double fastest = 0.0;
    for (StepRow& row : *this) {
      const double speed = approach(row, v);
      fastest = std::max(fastest, std::abs(speed));
      row.acts = row.acts || row.distance + h_ * speed < row.near;
    }
    return fastest;
  }
  /// Activate rows that would penetrate at the velocities v. Returns true if a row was activated.
  bool note_missed(const double* v, double fastest) {
    bool missed = false;
    for (StepRow& row : *this) {
      const bool penetrates = approach(row, v) + row.shift + row.bend(0) < -cones::reached * fastest;
      missed |= penetrates && !row.acts, row.acts |= penetrates;
    }
    return add_missed_corners(v, fastest) || missed;
  }

 private:
  double* doubles(int n) { return arena_.take<double>(static_cast<std::size_t>(n)); }

  StepRow& add(bool contact) {
    StepRow& row = row_[count_++];
    row = {doubles((contact ? 3 : 1) * nv_), contact, false, false, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, {}};
    std::fill(row.J, row.J + row.rows() * nv_, 0.0);
    return row;
  }
  /// Set the shift of a row. If the contact is open, it may close but not penetrate. If it penetrates, it separates, at most at the speed of a body
  /// that falls from that depth. `unit`: the velocity along the row that corresponds to 1 rad/s.
  void place(StepRow& row, double distance, double unit, double size) {
    row.distance = distance, row.near = contact_steps::near * size;
    row.shift =
        distance >= 0.0 ? distance / h_ : std::max(distance / h_, -std::sqrt(-2.0 * distance * unit * gravity_ / tree_.length));
  }
  /// Set restitution for a row that touches and approaches fast. A row that does not touch yet bounces only if it would penetrate by more than
  /// `deepest`.
  void bounce(StepRow& row, double restitution, bool poisson, double deepest) {
    const double before = approach(row, x_.v);
    if (!(restitution > 0.0 && before < -contact_steps::bounce_speed * gravity_ * h_)) return;
    row.shift = poisson ? 0.0 : restitution * before, row.expands = poisson ? restitution : 0.0, row.bounces = true;
    if (row.distance > 0.0 && row.distance + h_ * before > -deepest) --count_;
  }
  StepRow& add_point(const Kinematics<double>& k, int first, int second, const Vec3<double>& p, const Vec3<double>& normal) {
    const Mat3<double> E = contact_axes(normal);
    StepRow& row = add(true);
    row.first = first, row.second = second, row.position = p, row.axes = E;
    add_point_rows(tree_, k, first, p, E, 1.0, row.J), add_point_rows(tree_, k, second, p, E, -1.0, row.J);
    return row;
  }

  /// Set beta of a contact point that moves along the surface, so that its cone applies at the step's end. `rate`: its acceleration.
  void bend(StepRow& row, double distance, const Vec3<double>& rate) {
    const Vec3<double> bend = rate * (0.5 * h_);
    const double most = std::abs(bend(0));
    const bool touches = row.guess[0] > 0.0 || std::abs(distance) <= h_ * most;
    if (touches && !(std::abs(approach(row, x_.v) - bend(0)) > most)) row.bend = bend;
  }
  /// Set beta of a contact between shapes, whose point moves along both surfaces.
  void bend(StepRow& row, const CollisionContacts& all, const TouchingPoint<double>& point, const Kinematics<double>& k,
            double size) {
    double squares = 0.0;  // squared rate of the relative motion, in radians per second and sizes of the smaller shape per second
    for (int r = 0; r < 3; ++r) squares += square(scalar_product(row.J + r * nv_, x_.v, nv_) / size);
    for (const int link : {row.first, row.second}) squares += dot(k.link[link].V.angular, k.link[link].V.angular);
    if (square(h_) * squares <= square(contact_steps::slow)) return;
    MovingPlace at = {};
    if (!move(row, all, point, k, contact_steps::difference / std::sqrt(squares), at)) return;
    if (square(h_) * (dot(at.n_dot, at.n_dot) + dot(at.p_dot, at.p_dot) / square(size)) > 1.0)
      return;  // if two corners touch, the rate of the normal is undefined
    bend(row, point.at.distance, moving_bias(k, {row.first, row.second, row.friction}, row.position, row.axes, at));
  }
  /// Compute the rates of a contact point and of its normal: of a point on a plane whose corner or centre is fixed in the other body, from the velocities
  /// of the bodies; of another point, by central differences between `moment` seconds before and after. Returns false if the point does not persist, or
  /// if the function of the caller failed.
  bool move(const StepRow& row, const CollisionContacts& all, const TouchingPoint<double>& point, const Kinematics<double>& k,
            double moment, MovingPlace& at) {
    const auto [i, j] = all.scene->shapes_of(point.pair);
    const PlacedShape &first_shape = all.scene->shapes[i], &second_shape = all.scene->shapes[j];
    const PairFunction& function = all.scene->function(point.pair);
    const int body = all.scene->on_a_plane(point.pair).first;  // -1: no plane
    const bool stands = first_shape.shape.kind != ShapeKind::plane;
    const LinkMotion<double>&moving = k.link[stands ? row.first : row.second], &plane = k.link[stands ? row.second : row.first];
    const auto velocity = [](const LinkMotion<double>& link, const Vec3<double>& p) {
      return Vec3<double>(link.V.linear + cross(link.V.angular, Vec3<double>(p - link.X.p)));
    };
    const Shape& shape = (stands ? first_shape : second_shape).shape;
    if (body >= 0 && shape.kind != ShapeKind::cylinder && shape.kind != ShapeKind::ellipsoid) {
      const bool round = shape.kind == ShapeKind::sphere || shape.kind == ShapeKind::capsule;
      const Vec3<double> normal = row.axes.row(0), up = stands ? normal : Vec3<double>(-normal);
      const Vec3<double> centre = row.position + up * ((round ? shape.radius : 0.0) + 0.5 * point.at.distance);
      const Vec3<double> passes = velocity(moving, centre) - velocity(plane, centre);
      // the point is midway between the centre's surface and the plane
      at.p_dot = velocity(plane, row.position) + passes - up * (0.5 * dot(up, passes)), at.n_dot = cross(plane.V.angular, normal);
      return true;
    }
    if (point.pair != moved_pair_) {  // points of a pair are contiguous
      moved_pair_ = point.pair, moved_by_ = moment;
      // coordinates are relative to the point, to avoid rounding far from the origin; this is not possible for a function of the caller, which may
      // depend on the world's axes and origin
      const Vec3<double> about = moved_about_ = function ? zero3<double>() : row.position;
      const auto pose_after = [&](const PlacedShape& s, double time) {
        const LinkMotion<double>& body = k.link[link(all, s)];
        const Vec3<double>& w = body.V.angular;
        Transform<double> X = pose(all, s);
        const Vec3<double> v = body.V.linear + cross(w, Vec3<double>(X.p - body.X.p));
        X.p += v * time - about;
        for (int c = 0; c < 3; ++c) X.R.col(c) += cross(w, Vec3<double>(X.R.col(c))) * time;
        return X;
      };
      for (int side = 0; side < 2; ++side) {
        const double time = side ? moment : -moment;
        const Transform<double> X = pose_after(first_shape, time), Y = pose_after(second_shape, time);
        const double within = ahead_[i] + ahead_[j];
        const std::optional<Manifold<double>> points =
            function ? function(X, Y, within) : touch(first_shape.shape, X, second_shape.shape, Y, within);
        if (!points) return moved_pair_ = -1, s_.status = caller_failed, false;
        moved_[side] = *points;
      }
    }
    const ContactPoint<double> present = {Vec3<double>(point.at.position - moved_about_), point.at.normal, point.at.distance};
    // for a function of the caller use the nearest point, because the function may return points in another order
    const auto same = [&](const Manifold<double>& m) {
      return function ? m.nearest(present.position) : m.find_feature(static_cast<int>(point.id % Scene::features));
    };
    const ContactPoint<double>*before = same(moved_[0]), *after = same(moved_[1]);
    if (before || after) {  // use a one-sided difference if another feature replaces this one on the other side
      const double span = (before && after ? 2.0 : 1.0) * moved_by_;
      const ContactPoint<double>&first = before ? *before : present, &last = after ? *after : present;
      at.p_dot = (last.position - first.position) / span, at.n_dot = (last.normal - first.normal) / span;
      return true;
    }
    if (body < 0) return false;
    // a point that was added from the last step is fixed in the body
    at.p_dot = velocity(moving, row.position);
    at.n_dot = cross(plane.V.angular, Vec3<double>(row.axes.row(0)));
    return true;
  }

  void add_turning(StepRow& row, const Kinematics<double>& k, double torsional, double rolling) {
    if (torsional == 0.0 && rolling == 0.0) return;
    row.torsional = torsional, row.rolling = rolling, row.turning = doubles(3 * nv_);
    std::fill(row.turning, row.turning + 3 * nv_, 0.0);
    add_turning_rows(tree_, k, row.first, row.axes, 1.0, row.turning);
    add_turning_rows(tree_, k, row.second, row.axes, -1.0, row.turning);
  }

  void add_point(const RigidContact& c, const Kinematics<double>& k) {
    const Transform<double> X = k.link[c.frame.link].X * c.frame.on_the_link<double>(tree_),
                            on = k.link[c.on.link].X * c.on.on_the_link<double>(tree_);
    const Vec3<double> normal = on.R * c.normal.n;
    const double distance = dot(normal, Vec3<double>(X.p - on.p)) - c.offset - c.radius;
    StepRow& row = add_point(k, c.frame.link, c.on.link, X.p - normal * (c.radius + 0.5 * distance), normal);
    row.element = &c, row.friction = s_.parameter[c.friction.at];
    for (int r = 0; r < 3; ++r) row.guess[r] = x_.z[c.iz + r] * h_;
    if (row.guess[0] > 0.0 || std::abs(distance) < contact_steps::near * tree_.length)
      bend(row, distance, contact_bias(k, {c.frame.link, c.on.link, row.friction}, row.position, row.axes, c.radius));
    if (c.turns) {
      for (int r = 0; r < 3; ++r) row.guessed_moment[r] = x_.z[c.iz + RigidContact::numbers + r] * h_;
      add_turning(row, k, s_.parameter[c.torsional_friction.at], s_.parameter[c.rolling_friction.at]);
    }
    place(row, distance - 0.25 * h_ * row.bend(0), tree_.length, tree_.length);
    bounce(row, s_.parameter[c.restitution.at], c.poisson, HUGE_VAL);
  }

  /// Return the size of the smaller of two shapes. Points and unbounded shapes have no size and are ignored.
  double size_of(double first_size, double second_size) const {
    const double least =
        first_size > 0.0 && second_size > 0.0 ? std::min(first_size, second_size) : std::max(first_size, second_size);
    return least > 0.0 ? least : tree_.length;
  }
  void add_point(const CollisionContacts& all, const TouchingPoint<double>& point, const Kinematics<double>& k) {
    const ContactPair& pair = all.scene->pairs[point.pair];
    const int first = all.bodies[pair.first].link, second = all.bodies[pair.second].link;
    if (first == second) return;
    const auto [i, j] = all.scene->shapes_of(point.pair);
    const double size = size_of(all.scene->shapes[i].shape.reach(), all.scene->shapes[j].shape.reach());
    StepRow& row = add_point(k, first, second, point.at.position, point.at.normal);
    row.point = &point, row.friction = s_.parameter[all.friction.at + point.pair];
    if (all.turns)
      add_turning(row, k, s_.parameter[all.torsional_friction.at + point.pair],
                  s_.parameter[all.rolling_friction.at + point.pair]);
    if (const double* stored = state_of(all, point, contact_steps::match_distance * size)) {
      const Mat3<double>& E = row.axes;
      const Vec3<double> impulse = E * Vec3<double>(stored + CollisionContacts::force) * h_;
      for (int r = 0; r < 3; ++r) row.guess[r] = impulse(r);
      if (row.turning) {
        const Vec3<double> moment = E * Vec3<double>(stored + CollisionContacts::moment) * h_;
        for (int r = 0; r < 3; ++r) row.guessed_moment[r] = moment(r);
      }
    }
    if (row.guess[0] > 0.0 || std::abs(point.at.distance) < contact_steps::near * size) bend(row, all, point, k, size);
    place(row, point.at.distance - 0.25 * h_ * row.bend(0), tree_.length, size);
    bounce(row, s_.parameter[all.restitution.at + point.pair], all.poisson, contact_steps::sink_limit * size);
  }
  /// Return the last step's data of a contact point, or null. They are those of the nearest point of the same pair within `reach`, with any id.
  const double* state_of(const CollisionContacts& all, const TouchingPoint<double>& point, double reach) const {
    const double* best = nullptr;
    double nearest = square(reach);
    const int count = std::min(static_cast<int>(x_.z[all.iz + 1]), all.kept);
    const double* state = x_.z + all.iz + CollisionContacts::before_points;
    const double first_id = static_cast<double>(point.pair) * Scene::features;  // ids of this pair: from here, `features` of them
    for (int k = 0; k < count; ++k, state += all.numbers_per_point()) {
      if (const double id = state[CollisionContacts::id]; id < first_id || id >= first_id + Scene::features) continue;
      const Vec3<double> offset = point.at.position - Vec3<double>(state + CollisionContacts::position);
      if (const double away = dot(offset, offset); away < nearest) nearest = away, best = state;
    }
    return best;
  }

  Touching<double> touching_shapes(const CollisionContacts& all, const Kinematics<double>& k) {
    const Scene& scene = *all.scene;
    const int bodies = static_cast<int>(all.bodies.size()), n = static_cast<int>(scene.shapes.size());
    Transform<double>* at = arena_.take<Transform<double>>(bodies);
    for (int b = 0; b < bodies; ++b) at[b] = k.link[all.bodies[b].link].X * all.bodies[b].on_the_link<double>(tree_);
    Vec3<double>* center = arena_.take<Vec3<double>>(n);
    for (int i = 0; i < n; ++i) center[i] = at[scene.shapes[i].link].R * scene.shapes[i].at.p + at[scene.shapes[i].link].p;
    // the motion of an unbounded shape is evaluated at the distance of the other shapes
    const auto reach = [&](int i) {
      double most = scene.shapes[i].shape.reach();
      for (int j = 0; j < n && scene.shapes[i].shape.reach() < 0.0; ++j)
        most = std::max(most, Vec3<double>(center[j] - center[i]).norm() + scene.shapes[j].shape.reach());
      return most;
    };
    double fastest = 0.0;
    for (int i = 0; i < n; ++i) {
      const LinkMotion<double>& body = k.link[all.bodies[scene.shapes[i].link].link];
      const Vec3<double>&w = body.V.angular, v = body.V.linear + cross(w, Vec3<double>(center[i] - body.X.p));
      if (dot(w, w) + dot(v, v) > 0.0) fastest = std::max(fastest, v.norm() + w.norm() * reach(i));
    }
    fastest += h_ * gravity_;
    double* ahead = ahead_ = doubles(n);
    for (int i = 0; i < n; ++i)
      ahead[i] = contact_steps::look_ahead * h_ * fastest + contact_steps::near * std::max(0.0, scene.shapes[i].shape.reach());
    int count = 0;
    const PressedPoint* pressed = strongest(all, count);
    return scene.touching(at, ahead, arena_, pressed, count);
  }
  /// Mark shapes with many corners that rest on planes. Four points represent each of them, until other corners would penetrate.
  void note_standing(const Touching<double>& touching) {
    const auto& shapes = s_.plan.force_elements.all<CollisionContacts>();
    for (const TouchingPoint<double>& point : touching) {
      const Scene& scene = *shapes.begin()->scene;
      const int body = scene.on_a_plane(point.pair).first;
      if (body < 0 || (stands_ > 0 && stand_[stands_ - 1].pair == point.pair)) continue;
      const ShapeKind kind = scene.shapes[body].shape.kind;
      if (kind == ShapeKind::points || kind == ShapeKind::cylinder)
        stand_[stands_++] = {point.pair, 0, arena_.take<TouchingPoint<double>>(most_kept)};
    }
  }
  /// Add rows for corners that would penetrate at these velocities, one row per shape. Returns true if rows were added.
  bool add_missed_corners(const double* v, double fastest) {
    bool missed = false;
    for (Standing* stands = stand_; stands < stand_ + stands_; ++stands) {
      const CollisionContacts& all = *s_.plan.force_elements.all<CollisionContacts>().begin();
      const Scene& scene = *all.scene;
      const auto [body, plane] = scene.on_a_plane(stands->pair);
      const Transform<double> X = pose(all, scene.shapes[body]), Y = pose(all, scene.shapes[plane]);
      const Vec3<double> n = Y.R.col(2), w = turning(link(all, scene.shapes[body]), link(all, scene.shapes[plane]), v);
      const Vec3<double> up = n + cross(n, w) * h_;  // n . (r + h w x r) is the height at the end of the step
      Vec3<double> corner;
      int name;
      if (stands->added == most_kept || !lowest_corner(scene.shapes[body].shape, transpose_times(X.R, up), corner, name))
        continue;
      const TouchingPoint<double>& point = stands->corner[stands->added] = scene.meeting(stands->pair, X, Y, corner, name);
      if (std::any_of(begin(), end(), [&](const StepRow& row) { return row.point && scene.same(point, *row.point); })) continue;
      const int before = count_;
      add_point(all, point, kinematics_);
      if (count_ == before) continue;
      StepRow& row = row_[before];
      row.acts = approach(row, v) + row.shift + row.bend(0) < -cones::reached * fastest;
      row.acts ? ++stands->added : --count_;
      missed |= row.acts;
    }
    return missed;
  }
  /// Return the angular velocity of a link relative to another link.
  Vec3<double> turning(int link, int other, const double* v) {
    const Arena::Scope scope(arena_);
    double* J = doubles(3 * nv_);
    std::fill(J, J + 3 * nv_, 0.0);
    for (const auto& [of, sign] : {std::pair{link, 1.0}, std::pair{other, -1.0}})
      add_turning_rows(tree_, kinematics_, of, Mat3<double>(Mat3<double>::Identity()), sign, J);
    return vec3<double>(scalar_product(J, v, nv_), scalar_product(J + nv_, v, nv_), scalar_product(J + 2 * nv_, v, nv_));
  }
  static int link(const CollisionContacts& all, const PlacedShape& shape) { return all.bodies[shape.link].link; }
  Transform<double> pose(const CollisionContacts& all, const PlacedShape& shape) const {
    return kinematics_.link[link(all, shape)].X * all.bodies[shape.link].on_the_link<double>(tree_) * shape.at;
  }
  /// Return the points that are stored for the next step: those with the largest forces.
  const PressedPoint* strongest(const CollisionContacts& all, int& count) {
    const int count_stored = std::min(static_cast<int>(x_.z[all.iz + 1]), all.kept), wide = all.numbers_per_point();
    const double* z = x_.z + all.iz + CollisionContacts::before_points;
    PressedPoint* pressed = arena_.take<PressedPoint>(count_stored);
    int* pair = arena_.take<int>(count_stored);
    double* push = doubles(count_stored);  // squared forces
    for (int k = 0; k < count_stored; ++k) {
      const Vec3<double> force = Vec3<double>(z + k * wide + CollisionContacts::force);
      pair[k] = static_cast<int>(static_cast<long long>(z[k * wide]) / Scene::features), push[k] = dot(force, force);
    }
    for (int k = 0; k < count_stored; ++k) {
      int stronger = 0;
      for (int l = 0; l < count_stored; ++l)
        stronger += pair[l] == pair[k] && (push[l] > push[k] || (push[l] == push[k] && l < k));
      if (stronger >= most_kept) continue;
      int at = count++;  // insertion sort by pairs, because nearly all points are already in order
      for (; at > 0 && pressed[at - 1].pair > pair[k]; --at) pressed[at] = pressed[at - 1];
      pressed[at] = {pair[k], Vec3<double>(z + k * wide + CollisionContacts::position)};
    }
    return pressed;
  }

  void add_stop(const EndStop& stop, const AllJoints<double>& all) {
    for (const double side : {1.0, -1.0}) {
      const double bound = s_.parameter[(side > 0.0 ? stop.limits.lower : stop.limits.upper).at];
      const double unit = s_.unit(s_.plan.velocity_unit, stop.joint.front().iv);
      StepRow& row = add(false);
      if (stop.rigid) row.stop = &stop, row.sign = side, row.guess[0] = std::max(0.0, side * x_.z[stop.iz] * h_);
      double at = 0.0;
      for (const JointCoordinate& coordinate : stop.joint) along(coordinate.iv, side, all, row.J), at += all.q[coordinate.iq];
      place(row, side * (at - bound), unit, tree_.length);
      row.high = cones::unbounded;
    }
  }
  void add_friction(const JointFriction& friction, const AllJoints<double>& all) {
    StepRow& row = add(false);
    along(friction.iv, 1.0, all, row.J);
    row.high = h_ * friction.terms.of(s_.full_tree()).friction, row.low = -row.high, row.acts = true;
  }
  void along(int iv, double sign, const AllJoints<double>& all, double* J) const {
    for (int k = 0; k < nv_ && iv >= nv_; ++k) J[k] += sign * all.J[(iv - nv_) * nv_ + k];
    if (iv < nv_) J[iv] += sign;
  }

  System<double>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<double>& x_;
  double h_, gravity_;
  int nv_, count_ = 0;
  StepRow* row_ = nullptr;
  Kinematics<double> kinematics_;
  double* ahead_ = nullptr;  // search distance of each shape
  /// A shape with many corners on a plane. `corner`: its corners, except the points of the last step and the four lowest at the current tilt.
  struct Standing {
    int pair, added;
    TouchingPoint<double>* corner;
  };
  Standing* stand_ = nullptr;
  int stands_ = 0;
  int moved_pair_ = -1;
  Manifold<double> moved_[2];  // contact points of that pair, `moved_by_` seconds before and after the step's middle
  Vec3<double> moved_about_;  // origin of their positions
  double moved_by_ = 0.0;
};

}  // namespace sarrus
