// Answers requests for positions of a mechanism, line by line, for comparison with Python (tests/core/test_core_alone.py):
//   positions FILE.json < requests
// A request is the name of a function that answer() supports, followed by groups of the form KEY NAME COUNT NUMBERS...
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <sarrus.hpp>

using namespace sarrus;

namespace {

/// The groups of a request, by their keys.
struct Request {
  std::string question;
  JointNumbersByName fixed, guess;
  FrameNumbersByName frames;
  std::optional<Vector> near, v;
  std::vector<double> times;
  AssemblyOptions options;
  ExpressedIn axes = ExpressedIn::frame;
  PathOptions path;

  explicit Request(const std::string& line) {
    std::istringstream words(line);
    words >> question;
    for (std::string key, name; words >> key;) {
      std::size_t count = 0;
      words >> name >> count;
      std::vector<double> x(count);
      for (double& number : x) {  // a stream does not read NaN
        std::string word;
        words >> word;
        number = std::strtod(word.c_str(), nullptr);
      }
      if (key == "axes") axes = name == "world_aligned" ? ExpressedIn::world_aligned : ExpressedIn::frame;
      if (key == "fixed") fixed.emplace_back(name, x);
      if (key == "guess") guess.emplace_back(name, x);
      if (key == "frame") frames.emplace_back(name, x);
      if (key == "near") near = Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(count));
      if (key == "v") v = Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(count));
      if (key == "starts") options.starts = static_cast<int>(x[0]);
      if (key == "tolerance") options.tolerance = path.tolerance = x[0];
      if (key == "min_step") path.min_step = x[0];
      if (key == "max_step") path.max_step = x[0];
      if (key == "time") times = x, options.time = x[0];
      if (key == "branch")
        options.branch = name == "any" ? BranchChoice::any : name == "only" ? BranchChoice::only : BranchChoice::start;
    }
  }
  AssemblyStart start() const {
    AssemblyStart start(guess);
    start.q = near;
    return start;
  }
};

template <class Numbers> void print(const Numbers& x) {
  for (Eigen::Index k = 0; k < static_cast<Eigen::Index>(x.size()); ++k) std::printf(" %.17g", x.data()[k]);
}

void answer(const Robot& robot, const Request& r) {
  if (r.question == "assemble") {
    const Assembled found = robot.inverse_kinematics(r.frames, r.start(), r.fixed, r.options);
    print(found.q);
    std::printf(" | %s", found.other_branch ? found.reason.c_str() : "");
  } else if (r.question == "many") {
    const Eigen::Index nq = robot.assemble().q.size();
    BatchOptions options;
    options.states.count = static_cast<int>(r.near->size() / nq), options.states.is_batch = true,
    options.starts = r.options.starts;
    const RowMajor near = Eigen::Map<const RowMajor>(r.near->data(), options.states.count, nq);
    print(robot.inverse_kinematics_many(r.frames, {near, r.guess}, r.fixed, options).q);
  } else if (r.question == "modes") {
    for (const Vector& q : robot.assembly_modes(r.fixed, r.options.time)) print(q);
  } else if (r.question == "follow") {
    print(robot.follow({r.fixed, r.frames, r.times}, r.start(), r.path));
  } else if (r.question == "velocity") {
    print(robot.complete_velocity(*r.near, r.fixed, r.frames, r.options.time, r.axes));
  } else if (r.question == "acceleration") {
    print(robot.complete_acceleration(*r.near, *r.v, r.fixed, r.frames, r.options.time, r.axes));
  } else if (r.question == "waypoints") {
    const auto n = static_cast<Eigen::Index>(r.times.size());
    const Vector t = Eigen::Map<const Vector>(r.times.data(), n);
    const Path path = robot.path_through(t, Eigen::Map<const RowMajor>(r.near->data(), n, r.near->size() / n));
    print(path.at((t.head(n - 1) + 0.3 * (t.tail(n - 1) - t.head(n - 1))).eval()));
  } else if (r.question == "loosened") {
    const Robot loose = robot.without_redundant_constraints(r.near);
    std::printf(" %d", loose.tree().loops.rows);
    for (const JointDescription& joint : loose.description().joints)
      print(joint.at_child.p), std::printf(" %d", joint.constants.free);
  } else if (r.question == "random") {
    RandomNumbers numbers(3);
    print(robot.random(4, numbers, true)), print(robot.random(4, numbers));
  } else if (r.question == "dynamics") {
    print(robot.forward_dynamics(*r.near, *r.v, Vector(Vector::Zero(robot.tree().nv))));
  } else if (r.question == "efforts") {
    print(robot.actuator_efforts(*r.near, *r.v, Vector(Vector::Zero(robot.tree().nv))));
  } else if (r.question == "project") {
    print(robot.configuration_by_mass(*r.near));
  } else if (r.question == "rate") {
    std::vector<FrameVelocity> motions;
    for (const auto& [name, x] : r.frames)
      motions.push_back({name, {3, 4, 5}, Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size()))});
    print(robot.floating_base().resolved_rate(r.near->data(), motions));
  } else if (r.question == "path") {
    std::vector<WayPoints> ways;
    for (const auto& [name, x] : r.frames) {
      ways.push_back({name, false, {}});
      for (std::size_t k = 0; k + 2 < x.size(); k += 3)
        ways.back().poses.push_back({Mat3<double>::Identity(), vec3(x[k], x[k + 1], x[k + 2])});
    }
    const FreeFloatingMotion run = robot.floating_base().path(*r.near, ways, r.times, {}, 0.05, 1e-4);
    print(run.q), print(run.base_rotation);
  }
}

}  // namespace

int main(int, char** arguments) {
  const Robot robot = load(arguments[1]);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      answer(robot, Request(line));
    } catch (const std::exception& error) {
      std::printf(" error: %s", error.what());
    }
    std::printf("\n");
  }
}
