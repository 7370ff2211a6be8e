#include "elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "../mobility/effective_inertia.hpp"
#include "checks.hpp"
#include "kinds.hpp"

namespace sarrus {
namespace {

using namespace reading;

constexpr double most_of_kernels = 1e300;  // replaces infinity, because kernels are compiled for finite numbers

// ---- numbers of runs -----------------------------------------------------------------------------------------------

/// Return f(x, y) for numbers () or (runs,). If the numbers of runs differ, return (), because RunParameters raises the error.
template <class F> Numbers combined(const Numbers& x, const Numbers& y, F f) {
  const bool no_runs = x.numbers.empty() || y.numbers.empty();
  const std::size_t n = no_runs ? 0 : std::max(x.numbers.size(), y.numbers.size());
  const auto fits = [n](const Numbers& z) { return z.numbers.size() == n || z.numbers.size() == 1; };
  if (!fits(x) || !fits(y)) return x;
  Numbers all{x.shape.size() >= y.shape.size() ? x.shape : y.shape, {}};
  if (!all.shape.empty()) all.shape[0] = n;
  for (std::size_t k = 0; k < n; ++k)
    all.numbers.push_back(f(x.numbers[x.numbers.size() == 1 ? 0 : k], y.numbers[y.numbers.size() == 1 ? 0 : k]));
  return all;
}
template <class F> Numbers each_of(Numbers x, F f) {
  for (double& number : x.numbers) number = f(number);
  return x;
}
bool any_less(const Numbers& x, const Numbers& y) {
  bool any = false;
  combined(x, y, [&](double a, double b) { return any = any || a < b, 0.0; });
  return any;
}
bool any_nonzero(const Numbers& x) {
  return !all_of(x, [](double each) { return each == 0.0; });
}

/// Return lower and upper limits, each () or (runs,), or infinite.
std::pair<Numbers, Numbers> bounds(const std::string& label, const Argument& value) {
  const Argument::List pair = value.items();
  if (!value.is_sequence() || pair.size() != 2) refuse(label, "be two values, (lower, upper)", value);
  const Numbers lower = array(label, pair[0], false), upper = array(label, pair[1], false);
  if (lower.shape.size() > 1 || upper.shape.size() > 1)
    throw ShapeError(label + " must be numbers, or (runs,) each; got " + shape_text(lower.shape) + " and " +
                     shape_text(upper.shape));
  // the comparisons are written such that NaN is an error too; the interval must contain a finite value
  if (!all_of(lower, [](double x) { return x < infinity; }) || !all_of(upper, [](double x) { return x > -infinity; }) ||
      any_less(upper, lower))
    refuse(label, "be (lower, upper), with lower not greater than upper", value);
  return {lower, upper};
}

// ---- reader ----------------------------------------------------------------------------------------------------------

/// Data that the elements of a list share.
class Context : public NamedParts {
 public:
  const ElementModel& model;
  const ElementRun& run;
  RunParameters& parameters;

  Context(const ElementModel& m, const ElementRun& r, RunParameters& p)
      : NamedParts(m.functions.mechanism()), model(m), run(r), parameters(p) {}

  /// Return the effective inertia along the sum of these velocities in the initial configurations: () or (runs,).
  Numbers inertia_along(const std::vector<int>& velocities) const {
    const Vector neutral = run.start ? Vector() : model.positions().model().neutral();
    const bool several = run.start && run.start->shape.size() > 1;
    const std::size_t count = several ? run.start->shape[0] : 1;
    const RowMajor inertia =
        effective_inertia(model.functions, {velocities}, run.start ? run.start->numbers.data() : neutral.data(),
                          static_cast<std::int64_t>(count), model.rows);
    Numbers all{{}, {inertia.data(), inertia.data() + inertia.size()}};
    if (several || mechanism.variants()) all.shape = {all.numbers.size()};
    return all;
  }

  void check_independent(const std::string& label, const std::vector<JointVelocity>& targets,
                         const std::vector<std::string>& names) const;
};

/// Raise ModelError unless these velocities are independent and determine the motion in at least one of several configurations.
void Context::check_independent(const std::string& label, const std::vector<JointVelocity>& targets,
                                const std::vector<std::string>& names) const {
  const PositionModel& base = model.positions().model();  // variants have the same degrees of freedom
  const StateFunctions functions(base.mechanism, base.kernels);
  std::vector<Vector> places;
  try {
    places.push_back(model.positions().assemble().q);
  } catch (const AssemblyError&) {
    return;  // loops do not close here; the simulation will raise the error
  }
  // test nearby configurations too, because the home may be a singular position
  const Matrix steps = RandomNumbers().normal(3, tree.nv);
  const ScaledLoops::Walk walk = ScaledLoops(functions, places[0].data(), {}, base.rows).walk(places[0].data(), steps);
  for (int k = 0; k < steps.rows(); ++k)
    if (walk.open(k) <= tolerances::closed) places.push_back(walk.ends.row(k).transpose());
  std::string fault;
  for (const Vector& q : places) {
    const ScaledLoops loops(functions, q.data(), {}, base.rows);
    const Matrix motions = null_space(loops.jacobian(q.data()), tolerances::negligible);
    Matrix followed(targets.size(), motions.cols());
    for (std::size_t k = 0; k < targets.size(); ++k) followed.row(static_cast<Eigen::Index>(k)) = motions.row(targets[k].iv);
    const int determined = followed.size() ? rank(followed, tolerances::negligible) : 0;
    const auto freedom = static_cast<int>(motions.cols());
    const auto count = static_cast<int>(targets.size());
    if (determined == freedom && count == freedom) return;
    const std::string listed = names.empty() ? "no coordinates" : joined(names), f = std::to_string(freedom);
    if (!fault.empty()) continue;
    fault = count > freedom ? listed + " are not independent: there are " + f + " degrees of freedom"
                            : listed + " determine " + std::to_string(determined) + " of " + f +
                                  " degrees of freedom; expected coordinates that determine all of them";
  }
  throw ModelError("targets of " + label + " must be as many independent coordinates as there are degrees of freedom: " + fault);
}

/// Reader of one element into the struct of its kind.
class Reader {
 public:
  Reader(const Context& context, const Element& element, ForceElementList& list)
      : context_(context), element_(element), list_(list), usual_(element_arguments(element.kind)) {
    for (const auto& [key, value] : element.arguments)
      if (!find_argument(usual_, key)) {
        std::vector<std::string> names;
        for (const auto& each : usual_) names.push_back(each.first);
        throw ModelError(element.name + " has no argument '" + key + "'" + did_you_mean(key, std::move(names)));
      }
    if (const Argument* frame = find("frame")) place_ = text(*frame);
    if (const Argument* joint = find("joint"); joint && joint->is_sequence()) {
      std::vector<std::string> names;
      for (const Argument& each : joint->items()) names.push_back(text(each));
      place_ = joined(names, " + ");
    } else if (joint) {
      place_ = text(*joint);
    }
  }

  template <class Kind> void operator()(Kind& kind) {
    prepare(kind);
    kind.fields([&](const char* key, auto& member, Sign sign = Sign::any) {
      if (!set_.count(key)) read(key, member, sign);
    });
  }

 private:
  /// Return an argument, or its default value; null if there is no such argument.
  const Argument* find(const std::string& key) const {
    if (const Argument* value = find_argument(derived_, key)) return value;
    if (const Argument* value = find_argument(element_.arguments, key)) return value;
    return find_argument(usual_, key);
  }
  const Argument& at(const std::string& key) const {
    const Argument* value = find(key);
    if (!value || (value == find_argument(usual_, key) && value->is<Argument::Other>()))
      throw ModelError(element_.name + " needs the argument '" + key + "'");
    return *value;
  }
  void derive(const std::string& key, Argument value) { derived_.emplace_back(key, std::move(value)); }
  std::string label(const std::string& key) const { return key + " of " + element_.name; }

  const Numbers& checked(const std::string& key, Sign sign) const { return number(label(key), at(key), sign); }
  std::vector<int> velocity_of_joint() const { return {context_.velocity(at("joint"), at("index")).iv}; }

  // ---- fields, by type

  void read(const std::string& key, JointCoordinate& x, Sign) const {
    x = context_.coordinate(context_.joint(at(key)), at("index"), element_.name);
  }
  void read(const std::string& key, JointVelocity& x, Sign) const {
    const Argument* index = find("index");
    x = context_.velocity(at(key), index ? *index : Argument(0));
  }
  void read(const std::string& key, BodyFrame& x, Sign) const { x = body_frame(at(key)); }
  void read(const std::string& key, std::vector<BodyFrame>& x, Sign) const {
    for (const Argument& name : at(key).items()) x.push_back(body_frame(name));
  }
  void read(const std::string& key, Direction& x, Sign) const { x.n = unit_direction(at(key)); }
  void read(const std::string& key, double& x, Sign sign) const { x = constant(label(key), at(key), sign); }
  void read(const std::string& key, Number& x, Sign sign) const { x.at = add(key, checked(key, sign), 0); }
  void read(const std::string& key, NumberArray& x, Sign) const { x.at = add(key, array(label(key), at(key)), 1); }
  void read(const std::string& key, Range& x, Sign) const {
    const auto [lower, upper] = bounds(label(key), at(key));
    x.lower.at = context_.parameters.add(lower, 0), x.upper.at = context_.parameters.add(upper, 0);
    context_.parameters.name(name_of(key), x.lower.at);
  }
  void read(const std::string& key, const Law*& x, Sign) const {
    const Argument& value = at(key);
    const Argument* usual = find_argument(usual_, key);
    x = value.is_none() && usual && usual->is_none() ? nullptr : law(key + " of '" + place_ + "'", value);
  }
  /// Read six components, numbers or functions of time: a list, or an array (6,) or (runs, 6).
  void read(const std::string& key, std::array<const Law*, 6>& x, Sign) const {
    const Argument& value = at(key);
    Argument::List components = value.items();
    if (const Numbers* rows = value.get<Numbers>(); rows && rows->shape.size() == 2 && rows->shape[1] == 6 && !value.is_list()) {
      components.clear();
      for (std::size_t k = 0; k < x.size(); ++k) {
        Numbers column{{rows->shape[0]}, {}};
        for (std::size_t run = 0; run < rows->shape[0]; ++run) column.numbers.push_back(rows->numbers[6 * run + k]);
        components.emplace_back(std::move(column));
      }
    }
    if (components.size() != x.size())
      refuse(label(key) + " on '" + place_ + "'", "be six numbers or functions of time, [moment; force]", value);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = law(key + "[" + std::to_string(k) + "] on '" + place_ + "'", components[k]);
  }
  void read(const std::string& key, bool& x, Sign) const {
    const bool* truth = at(key).get<bool>();
    if (!truth) refuse(label(key), "be True or False", at(key));
    x = *truth;
  }
  void read(const std::string& key, int& x, Sign) const { x = static_cast<int>(constant(label(key), at(key))); }
  void read(const std::string& key, std::vector<double>& x, Sign) const { x = array(label(key), at(key)).numbers; }
  void read(const std::string& key, std::shared_ptr<const Scene>& x, Sign) const {
    x = object<std::shared_ptr<const Scene>>(key);
  }
  void read(const std::string& key, const TaskControl*& x, Sign) const {
    x = list_.keep(*object<std::shared_ptr<const TaskControl>>(key));
  }
  void read(const std::string& key, const ForceElements*& x, Sign) const {
    const auto elements = object<Argument::Elements>(key);
    for (const Element& inner : *elements)
      each_kind([&](const auto& kind) {
        if (inner.kind == kind.name && !kind.can_be_sampled)
          throw ModelError(inner.name +
                           " cannot be sampled: pass [SampleAndHold(...), element] instead of an element inside SampleAndHold");
      });
    x = list_.keep_inner(
        [&](ForceElementList& inner) { add_elements(context_.model, *elements, context_.run, inner, context_.parameters); });
  }
  template <class X> void read(const std::string& key, X&, Sign) const {  // fields of other types must be set by prepare()
    throw ModelError(label(key) + " cannot be given by name");
  }

  template <class X> const X& object(const std::string& key) const {
    const X* x = at(key).get<X>();
    if (!x) throw ModelError(label(key) + " must be an object of the library; got " + at(key).shown());
    return *x;
  }
  BodyFrame body_frame(const Argument& name) const {
    const PlacedFrame& frame = context_.frame(name);
    return {frame.link, context_.mechanism.number_of(frame)};
  }

  std::string name_of(const std::string& key) const {
    return element_.name + (place_.empty() ? "" : "(" + place_ + ")") + "." + key;
  }
  int add(const std::string& key, const Numbers& numbers, std::size_t axes) const {
    const int begin = context_.parameters.add(numbers, axes);
    context_.parameters.name(name_of(key), begin);
    return begin;
  }
  /// Return a function of time; if the argument is a sequence with one function for each run, the result selects that of the run.
  const Law* law(const std::string& what, const Argument& value) const {
    const Numbers* numbers = value.get<Numbers>();
    if (!value.is<Argument::List>() && !(numbers && numbers->shape.size() == 1)) return list_.keep(to_law(what, value));
    const Argument::List* list = value.get<Argument::List>();
    const std::size_t count = list ? list->size() : numbers->numbers.size();
    if (count == 0) refuse(what, "be a time function or number, or one for each run", value);
    Law all;
    Numbers selected{{0}, {}};
    const auto before = [](const Law& a, const Law& b) {
      return std::tie(a.start, a.coefficient, a.harmonic, a.period) < std::tie(b.start, b.coefficient, b.harmonic, b.period);
    };
    std::map<Law, double, decltype(before)> numbered(before);
    for (const std::size_t row : context_.parameters.rows_of(count)) {
      const Argument item = list ? Argument() : Argument(numbers->numbers[row]);
      const Law* given = list ? (*list)[row].get<Law>() : nullptr;
      auto at = given ? numbered.find(*given) : numbered.end();
      if (at == numbered.end()) {
        at = numbered.emplace(given ? *given : to_law(what, list ? (*list)[row] : item), static_cast<double>(all.each.size()))
                 .first;
        if (at->second == static_cast<double>(all.each.size())) all.each.push_back(at->first);
      }
      selected.numbers.push_back(at->second);
    }
    selected.shape[0] = selected.numbers.size();
    all.parameter_index = context_.parameters.add_selected(selected);
    return list_.keep(std::move(all));
  }

  // ---- kinds with arguments that are not fields, and default values that depend on the mechanism

  template <class Kind> void prepare(Kind&) {}

  void prepare(PID& e) {
    if (context_.run.effort_limits.empty()) return;
    // the joint's effort limit also limits z, to avoid integral wind-up
    read("joint", e.joint, Sign::any);
    const double most = context_.run.effort_limits[static_cast<std::size_t>(e.joint.iv)];
    auto [lower, upper] = bounds(label("limits"), at("limits"));
    for (Numbers* limit : {&lower, &upper})
      *limit = each_of(std::move(*limit), [most](double x) { return std::min(std::max(x, -most), most); });
    derive("limits", Argument::List{std::move(lower), std::move(upper)});
  }
  void prepare(FeedforwardEffort&) { derive("effort", at("law")); }
  void prepare(AppliedWrench& e) {
    if (context_.frame(at("frame")).body == 0)
      throw ModelError(element_.name + ": frame '" + place_ + "' is fixed to the ground; expected a frame of a moving body");
    const std::string axes = text(at("expressed_in"));
    if (axes != "frame" && axes != "world_aligned") no_such_name("expressed_in", axes, {"frame", "world_aligned"}, element_.name);
    e.world_aligned = axes == "world_aligned";
    set_.insert("world_aligned");
  }
  void prepare(ComputedTorque& e) { prepare_tracking(e); }
  void prepare(PDPlus& e) { prepare_tracking(e); }
  void prepare_tracking(TrackingLaw& e);
  Numbers gains(const char* key, std::size_t n, const std::string& size) const;
  void prepare(GravityCompensation& e) {
    if (context_.tree.loops.rows > 0 || !actuated_joints(context_.mechanism).empty()) e.motors = context_.motors(element_.name);
    set_.insert("motors");
  }
  void prepare(LuGreFriction&) {
    const Argument sliding = at("sliding"), sticking = at("sticking").is_none() ? sliding : at("sticking");
    const Numbers &slides = checked("sliding", Sign::positive), &sticks = number(label("sticking"), sticking, Sign::positive),
                  &stiffness = checked("stiffness", Sign::positive);
    if (any_less(sticks, slides))
      throw ModelError(label("sticking") + " must be no less than sliding; got " + sticking.shown() + " and " + sliding.shown());
    if (at("damping").is_none())
      derive("damping", combined(stiffness, context_.inertia_along(velocity_of_joint()),
                                 [](double k, double m) { return 2.0 * std::sqrt(k * m); }));
    if (at("sticking").is_none()) derive("sticking", sliding);
  }
  void prepare(CompliantContact&) {
    if (!at("height").is_none() && !(std::abs(unit_direction(at("along")).dot(unit_direction(at("normal")))) < 1e-9))
      throw ModelError(label("along") + " must be perpendicular to its normal; got " + at("along").shown() + " and " +
                       at("normal").shown());
  }
  void prepare(PinClearance&) { check_other_body("so it has no play; expected a bearing on another body"); }
  void prepare(Bushing&) {
    check_other_body("so it has no effect; expected a frame of another body");
    for (const char* key : {"stiffness", "damping", "preload"}) {
      Numbers six = gains(key, 6, "6");
      if (key != std::string("preload") && !all_of(six, [](double x) { return x >= 0.0; }))
        refuse(label(key), "not be negative", at(key));
      derive(key, std::move(six));
    }
  }
  void prepare(GasSpring&);
  void check_initial_length(const Numbers& start, const Numbers& shortest, const Numbers& longest);
  /// Raise ModelError if both frames belong to the same body.
  void check_other_body(const char* consequence) const {
    if (context_.frame(at("frame")).body == context_.frame(at("on")).body)
      throw ModelError(element_.name + " of '" + text(at("frame")) + "' is on '" + text(at("on")) +
                       "', which belongs to the same body, " + consequence);
  }
  void prepare(RigidContact& e) {
    check_other_body("so they never touch; expected a plane on another body");
    if (!all_of(checked("restitution", Sign::not_negative), [](double x) { return x <= 1.0; }))
      refuse(label("restitution"), "be from 0 to 1", at("restitution"));
    e.turns = any_nonzero(checked("torsional_friction", Sign::not_negative)) ||
              any_nonzero(checked("rolling_friction", Sign::not_negative));
    e.poisson = is_poisson();
    set_.insert({"turns", "poisson"});
  }
  bool is_poisson() const {
    const std::string law = text(at("restitution_law"));
    if (law != "newton" && law != "poisson") no_such_name("restitution_law", law, {"newton", "poisson"}, element_.name);
    return law == "poisson";
  }
  void prepare(CollisionContacts& e);
  void prepare(EndStop& e);
  void prepare(ActuatorModel& e);
  void prepare(ReactionWheel&);
  void prepare(EffortTable& e) { prepare_table(e); }
  void prepare(ZeroOrderHold& e) { prepare_table(e); }
  template <class Table> void prepare_table(Table& e);
  void prepare(SampleAndHold& e);
  std::vector<double> steps(const std::string& quantity, const Argument& of) const;

  const Context& context_;
  const Element& element_;
  ForceElementList& list_;
  const Argument::Named usual_;
  std::string place_;
  Argument::Named derived_;  // computed values of fields; they have priority over arguments
  std::set<std::string> set_;  // fields whose values are already set
};

/// Return the gains of n targets (n,) or (runs, n). An argument with one number applies to all targets.
Numbers Reader::gains(const char* key, std::size_t n, const std::string& size) const {
  Numbers gain = array(label(key), at(key));
  const auto& shape = gain.shape;
  const bool one = shape.empty(), per_run = shape.size() == 2 && (shape[1] == 1 || shape[1] == n);
  if (!one && shape != std::vector<std::size_t>{n} && !per_run) {
    const std::string count = std::to_string(n);
    const std::string axis = size == count ? "(" + count + ",)" : "(" + size + ",) = (" + count + ",)";
    throw ShapeError(label(key) + " must be a number, " + axis + ", or for many runs (runs, " + count + ") or (runs, 1); got " +
                     shape_text(shape));
  }
  if (!one && !(per_run && shape[1] != n)) return gain;
  Numbers each{shape, {}};
  each.shape.resize(per_run ? 2 : 1), each.shape.back() = n;
  for (const double x : gain.numbers) each.numbers.insert(each.numbers.end(), n, x);
  return each;
}

void Reader::prepare_tracking(TrackingLaw& e) {
  const std::string& kind = element_.name;
  const Argument::Named* by_joint = at("targets").get<Argument::Named>();
  if (!by_joint) refuse(label("targets"), "map joints to time functions or numbers", at("targets"));
  bool closed = context_.tree.loops.rows > 0;
  for (const int j : actuated_joints(context_.mechanism)) closed |= context_.joint(static_cast<std::size_t>(j)).closes_loop;
  if (!closed && context_.tree.nq != context_.tree.nv)
    throw ModelError(kind + " needs joints with as many coordinates as velocities; got a ball or free joint");
  struct Target {
    JointCoordinate at;
    Argument value;
    std::string joint;
  };
  std::vector<Target> targets;
  if (!closed)  // all tree joints have a target, in their order
    for (int k = 0; k < context_.tree.nv; ++k) targets.push_back({{k, k}, 0.0, ""});
  std::vector<std::string> names;
  for (const auto& [name, value] : *by_joint) {
    const NamedParts::PlacedJoint joint = context_.tree_joint(name, "target of " + kind);
    const int nv = joint.joint.nv;
    Argument::List laws = value.items();
    if (!value.is_sequence() || (nv == 1 && laws.size() != 1)) laws = {value};
    if (static_cast<int>(laws.size()) != nv)
      throw ShapeError("joint '" + name + "' has " + std::to_string(nv) + " coordinates; got " + std::to_string(laws.size()) +
                       " targets");
    for (int k = 0; k < nv; ++k) {
      const JointCoordinate coordinate =
          closed ? context_.coordinate(joint, k, "a target of " + kind) : JointCoordinate{joint.iv + k, joint.iv + k};
      const Target target = {coordinate, laws[static_cast<std::size_t>(k)], name};
      if (closed)
        targets.push_back(target);
      else
        targets[static_cast<std::size_t>(coordinate.iv)] = target;
      names.push_back(nv > 1 ? name + "[" + std::to_string(k) + "]" : name);
    }
  }
  if (closed) {
    std::vector<JointVelocity> velocities;
    for (const Target& target : targets) velocities.push_back({target.at.iv});
    context_.check_independent(kind, velocities, names);
  }
  for (const char* key : {"proportional", "derivative"}) derive(key, gains(key, targets.size(), closed ? "n" : "nv"));
  for (const Target& target : targets)
    e.targets.push_back({target.at.iq, target.at.iv, law("target of '" + target.joint + "'", target.value)});
  if (closed) e.motors = context_.motors(kind);
  set_.insert({"targets", "motors"});
}

/// Set the coefficients of each pair that may touch, `coefficients` (pairs, 4). An argument replaces them: a number for all pairs, or a list of
/// [pair, number], where a pair is given by the names of both shapes, as in `pairs`.
void Reader::prepare(CollisionContacts& e) {
  const Numbers& usual = array(label("coefficients"), at("coefficients"));
  const Argument::List names = at("pairs").items();
  const auto sorted_pair = [](const Argument::List& shapes) {
    std::pair<std::string, std::string> pair = {text(shapes.at(0)), text(shapes.at(1))};
    if (pair.second < pair.first) std::swap(pair.first, pair.second);
    return pair;
  };
  std::map<std::pair<std::string, std::string>, std::size_t> by_name;
  for (std::size_t i = 0; i < names.size(); ++i) by_name[sorted_pair(names[i].items())] = i;
  const std::size_t pairs = usual.shape[0];
  const char* keys[] = {"friction", "restitution", "torsional_friction", "rolling_friction"};
  for (std::size_t k = 0; k < 4; ++k) {
    const Argument& argument = at(keys[k]);
    const std::string subject = label(keys[k]);
    const bool by_pair = argument.is<Argument::List>() && argument.items()[0].is<Argument::List>();
    std::vector<Numbers> each;
    for (std::size_t i = 0; i < pairs; ++i) each.push_back({{}, {usual.numbers[4 * i + k]}});
    const auto checked_number = [&](const Argument& x) { return number(subject, x, Sign::not_negative); };
    if (by_pair) {
      for (const Argument& item : argument.items()) {
        const Argument::List both = item.items(), shapes = both.at(0).items();
        const auto found = shapes.size() == 2 ? by_name.find(sorted_pair(shapes)) : by_name.end();
        if (found == by_name.end())
          throw ModelError(subject + ": " + both[0].shown() + " is not a pair of shapes that may touch");
        if (!both.at(1).is_none()) each[found->second] = checked_number(both[1]);
      }
    } else if (!argument.is_none()) {
      each.assign(pairs, checked_number(argument));
    }
    std::optional<std::size_t> runs;
    for (const Numbers& x : each) {
      if (k == 1 && !all_of(x, [](double restitution) { return restitution <= 1.0; }))
        refuse(subject, "be from 0 to 1", argument);
      if (k >= 2) e.turns |= any_nonzero(x);
      if (x.shape.empty()) continue;
      if (runs && *runs != 1 && x.shape[0] != 1 && x.shape[0] != *runs)
        throw ShapeError(subject + ": all pairs must have the same number of values, one or (runs,)");
      if (!runs || *runs == 1) runs = x.shape[0];
    }
    Numbers all{{pairs}, {}};
    if (runs) all.shape.insert(all.shape.begin(), *runs);
    for (std::size_t i = 0; i < runs.value_or(1); ++i)
      for (const Numbers& x : each) all.numbers.push_back(x.numbers[x.numbers.size() == 1 ? 0 : i]);
    derive(keys[k], std::move(all));
  }
  e.poisson = is_poisson();
  set_.insert({"turns", "poisson"});
}

void Reader::prepare(EndStop& e) {
  const Argument::List names = at("joint").is_sequence() ? at("joint").items() : Argument::List{at("joint")};
  if (names.empty()) throw ModelError(label("joint") + " must name at least one joint; got none");
  std::vector<int> velocities;
  for (const Argument& name : names) {
    e.joint.push_back(context_.coordinate(context_.joint(name), at("index"), "an end stop"));
    velocities.push_back(e.joint.back().iv);
  }
  e.rigid = context_.run.rigid;
  set_.insert({"joint", "rigid"});
  if (at("limits").is_none()) {
    if (names.size() > 1) {
      std::vector<std::string> listed;
      for (const Argument& name : names) listed.push_back(quoted(text(name)));
      throw ModelError("EndStop: the sum of " + joined(listed) + " has no limits: pass limits=(lower, upper)");
    }
    const NamedParts::PlacedJoint joint = context_.joint(names[0]);
    const auto& range = context_.model.type(joint.index).limits;
    if (!range) throw ModelError("EndStop: joint '" + joint.joint.name + "' has no limits: pass limits=(lower, upper)");
    const auto k = static_cast<std::size_t>(e.joint[0].iv - joint.iv);
    derive("limits", {range->first[k], range->second[k]});
  }
  const bool soft = at("stiffness").is_none(), damped = !at("damping").is_none();
  if (!soft && damped) return;
  const Numbers inertia = context_.inertia_along(velocities);
  const Numbers stiffness = soft ? each_of(inertia, [](double m) { return 2.5e5 * m; }) : checked("stiffness", Sign::positive);
  derive("stiffness", stiffness);
  if (!damped) derive("damping", combined(stiffness, inertia, [](double k, double m) { return std::sqrt(k * m); }));
}

/// Set the stops: by default, the force F1 compresses them by a hundredth of the stroke.
void Reader::prepare(GasSpring&) {
  check_other_body("so its length is constant; expected a frame of another body");
  const Numbers &longest = checked("extended_length", Sign::positive), &stroke = checked("stroke", Sign::positive);
  const Numbers shortest = combined(longest, stroke, [](double l, double s) { return l - s; });
  if (!all_of(shortest, [](double l) { return l > 0.0; })) refuse(label("stroke"), "be less than extended_length", at("stroke"));
  if (!all_of(checked("progression", Sign::positive), [](double x) { return x >= 1.0; }))
    refuse(label("progression"), "be at least 1", at("progression"));
  Numbers stiffness = combined(checked("force", Sign::positive), stroke, [](double f, double s) { return 100.0 * f / s; });
  if (at("stop_stiffness").is_none())
    derive("stop_stiffness", stiffness);
  else
    stiffness = checked("stop_stiffness", Sign::not_negative);
  if (at("stop_damping").is_none()) derive("stop_damping", each_of(std::move(stiffness), [](double k) { return 0.01 * k; }));

  // a length far outside of the stroke in the initial configuration is a mistake in a length, or in a frame
  if (const std::optional<Numbers>& start = context_.run.start) check_initial_length(*start, shortest, longest);
}

/// Raise ModelError if the initial length of a run is outside of these lengths by more than a tenth of their difference.
void Reader::check_initial_length(const Numbers& start, const Numbers& shortest, const Numbers& longest) {
  const std::size_t nq = start.shape.back(), states = nq ? start.numbers.size() / nq : 1;
  const auto of_run = [](const Numbers& x, std::size_t run) { return x.numbers[std::min(run, x.numbers.size() - 1)]; };
  const std::size_t runs = std::max({states, shortest.numbers.size(), longest.numbers.size()});
  if (!states) return;
  for (std::size_t run = 0; run < runs; ++run) {
    double X[2][16], squares = 0.0;
    for (int i = 0; i < 2; ++i) {
      const PlacedFrame& frame = context_.frame(at(i ? "on" : "frame"));
      context_.model.functions.evaluate(Operation::pose, {start.numbers.data() + std::min(run, states - 1) * nq}, X[i],
                                        {frame.link, frame.body, frame.X, ExpressedIn::frame});
    }
    for (int i = 3; i < 12; i += 4) squares += (X[0][i] - X[1][i]) * (X[0][i] - X[1][i]);
    const double length = std::sqrt(squares), most = of_run(longest, run), least = of_run(shortest, run),
                 margin = 0.1 * (most - least);
    if (length > most + margin || length < least - margin)
      throw ModelError(element_.name + " of '" + place_ + "'" + (runs > 1 ? " in run " + std::to_string(run) : "") +
                       ": the initial length is " + sarrus::shortest(length) + " m; expected " + sarrus::shortest(least) +
                       " (compressed) to " + sarrus::shortest(most) + " m (extended)");
  }
}

void Reader::prepare(ActuatorModel& e) {
  const bool first = !at("time_constant").is_none(), second = !at("natural_frequency").is_none();
  const std::string subject = "ActuatorModel of '" + place_ + "'";
  if (first && second)
    throw ModelError(subject + ": expected a time_constant (first order) or a natural_frequency (second order); got both");
  const Argument& line = at("torque_speed");
  if (!first && !second && line.is_none())
    throw ModelError(subject + " has no effect: pass time_constant, natural_frequency or torque_speed");
  e.order = first ? 1 : second ? 2 : 0;
  set_.insert("order");
  Numbers bandwidth{{}, {1.0}};
  if (first) bandwidth = each_of(checked("time_constant", Sign::positive), [](double t) { return 1.0 / t; });
  if (second) bandwidth = checked("natural_frequency", Sign::positive);
  derive("bandwidth", std::move(bandwidth));
  const Numbers& gear = checked("gear_ratio", Sign::positive);
  Argument::List ends = {most_of_kernels, most_of_kernels};
  if (!line.is_none()) ends = line.items();
  if (ends.size() != 2) refuse(label("torque_speed"), "be (stall torque, no-load speed)", line);
  const char* keys[] = {"stall", "no_load_speed"};
  for (std::size_t k = 0; k < 2; ++k) {
    const Numbers& x = array(label("torque_speed"), ends[k], false);
    if (x.shape.size() > 1) throw ShapeError(label("torque_speed") + " must be a number, or (runs,); got " + shape_text(x.shape));
    if (!all_of(x, [](double each) { return each > 0.0; })) refuse(label("torque_speed"), "be positive", ends[k]);
    derive(keys[k], combined(x, gear, [k](double of_motor, double ratio) {
             return std::min(k == 0 ? of_motor * ratio : of_motor / ratio, most_of_kernels);
           }));
  }
}

void Reader::prepare(ReactionWheel&) {
  const NamedParts::PlacedJoint at_joint = context_.joint(at("joint"));
  const JointDescription& joint = at_joint.joint;
  if (joint.kind != JointKind::revolute)
    throw ModelError("a ReactionWheel needs a Revolute joint; '" + joint.name + "' is " + at_joint.type().name());
  if (!at("inertia").is_none()) return;
  const std::vector<BodyDescription>& bodies = context_.mechanism.description().bodies;
  const auto wheel = std::find_if(bodies.begin(), bodies.end(), [&](const auto& body) { return body.name == joint.child; });
  // inertia about the axis a through p: a . I a + m |p x a|^2 - 2 (h x a) . (p x a), where I and h = m c are those of the body about its origin
  const Inertia<double>& body = wheel->inertia;
  const Vec3<double> axis = joint.at_child.R * joint.axis, arm = cross<double>(joint.at_child.p, axis);
  derive("inertia",
         dot<double>(axis, body.I * axis) + body.m * dot<double>(arm, arm) - 2.0 * dot<double>(cross<double>(body.h, axis), arm));
}

template <class Table> void Reader::prepare_table(Table& e) {
  const Numbers &times = array(label("times"), at("times")), &u = array(label("u"), at("u"));
  if (times.shape.size() != 1 || times.numbers.empty())
    throw ShapeError(label("times") + " must be (n,), the same in all runs; got " + shape_text(times.shape));
  if (std::adjacent_find(times.numbers.begin(), times.numbers.end(), [](double a, double b) { return !(a < b); }) !=
      times.numbers.end())
    throw ModelError(label("times") + " must increase");
  std::vector<std::string> names;
  const auto add = [&](const NamedParts::PlacedJoint& joint) {
    names.push_back(joint.joint.name), context_.add_velocities(joint, e.motors);
  };
  const std::vector<int> actuated = actuated_joints(context_.mechanism);
  if (!at("joints").is_none()) {
    for (const Argument& name : at("joints").items()) add(context_.joint(name));
  } else if (!actuated.empty()) {
    for (const int j : actuated) add(context_.joint(static_cast<std::size_t>(j)));
  } else {
    for (std::size_t j = 0; j < context_.mechanism.joints().size(); ++j)
      if (!context_.joint(j).closes_loop) add(context_.joint(j));
  }
  const std::size_t n = times.numbers.size(), m = e.motors.size(), axes = u.shape.size();
  if ((axes != 2 && axes != 3) || u.shape[axes - 2] != n || u.shape[axes - 1] != m)
    throw ShapeError(label("u") + " must be (n, m) = (" + std::to_string(n) + ", " + std::to_string(m) + ") for joints " +
                     joined(names) + ", or (runs, n, m); got " + shape_text(u.shape));
  Numbers rows = u;
  rows.shape.resize(axes - 1), rows.shape.back() = n * m;
  derive("u", std::move(rows));
  set_.insert("motors");
}

void Reader::prepare(SampleAndHold& e) {
  e.period = constant(label("period"), at("period"), Sign::positive);
  e.delay = constant(label("delay"), at("delay"));
  if (!(e.delay >= 0.0 && e.delay <= 1e4 * e.period))
    throw ModelError(label("delay") + " must be from 0 to 10000 periods of " + shortest(e.period) + " s; got " +
                     at("delay").shown() + " s");
  const Argument& of = at("quantisation");
  const Argument::Named* all = of.get<Argument::Named>();
  const Argument zero = 0.0;
  const auto quantity = [&](const char* name) -> const Argument& {
    const Argument* step = all ? find_argument(*all, name) : std::string(name) == "position" && !of.is_none() ? &of : nullptr;
    return step ? *step : zero;
  };
  e.position_step = steps("position", quantity("position")), e.velocity_step = steps("velocity", quantity("velocity"));
  e.effort_step = steps("effort", quantity("effort"));
  set_.insert({"period", "delay", "position_step", "velocity_step", "effort_step"});
}

/// Return the steps of all coordinates or velocities; empty if all are zero.
std::vector<double> Reader::steps(const std::string& quantity, const Argument& of) const {
  const bool positions = quantity == "position";
  const std::string subject = quantity + " of Quantisation";
  std::vector<double> all(
      static_cast<std::size_t>(positions ? context_.tree.nq + context_.tree.loop_nq : context_.tree.nv + context_.tree.loop_nv));
  const Argument::Named* by_joint = of.get<Argument::Named>();
  const auto set = [&](const NamedParts::PlacedJoint& joint, const Argument& step) {
    const double size = constant(subject, step);
    if (size < 0.0) refuse(subject, "not be negative", step);
    if (positions && joint.type().has_quaternion()) {
      if (by_joint)
        throw ModelError(subject + " needs a joint without quaternion; '" + joint.joint.name + "' is " + joint.type().name());
      return;
    }
    std::fill_n(all.begin() + (positions ? joint.iq : joint.iv), positions ? joint.joint.nq : joint.joint.nv, size);
  };
  if (by_joint)
    for (const auto& [name, step] : *by_joint) set(context_.joint(name), step);
  else
    for (std::size_t j = 0; j < context_.mechanism.joints().size(); ++j) set(context_.joint(j), of);
  return std::all_of(all.begin(), all.end(), [](double x) { return x == 0.0; }) ? std::vector<double>() : all;
}

/// Checks of the combination of elements in one list.
class Company {
 public:
  void add(const Element& element, const ActuatorModel& e) { add_at_joint(element, e.joint.iv); }
  void add(const Element& element, const ReactionWheel& e) { add_at_joint(element, e.joint.iv); }
  void add(const Element& element, const CollisionContacts&) {
    if (!seen_.emplace(element.kind, 0).second)
      throw ModelError("got several " + element.name + "; expected one, which applies to all shapes");
  }
  void add(const Element& element, const TrackingLaw&) {
    if (!seen_.emplace("all joints", 0).second)
      throw ModelError("got several controllers of all joints, such as " + element.name + "; expected one");
  }
  void add(const Element&, const ForceElement&) {}

 private:
  void add_at_joint(const Element& element, int iv) {
    if (seen_.emplace(element.kind, iv).second) return;
    for (const auto& [key, value] : element.arguments)
      if (key == "joint") throw ModelError("joint " + value.shown() + " has several " + element.name + "; expected one");
  }

  std::set<std::pair<std::string, int>> seen_;
};

}  // namespace

// ---- elements --------------------------------------------------------------------------------------------------------

void add_elements(const ElementModel& model, const std::vector<Element>& elements, const ElementRun& run, ForceElementList& list,
                  RunParameters& parameters) {
  const Context context(model, run, parameters);
  std::vector<Element> sorted = elements;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Element& a, const Element& b) { return order_of_kind(a.kind) < order_of_kind(b.kind); });
  Company company;
  for (const Element& element : sorted) {
    Reader read(context, element, list);
    each_kind([&](auto kind) {
      if (element.kind != kind.name) return;
      read(kind);
      company.add(element, kind);
      list.add(std::move(kind));
    });
  }
}

}  // namespace sarrus
