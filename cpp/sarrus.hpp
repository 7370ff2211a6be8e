// sarrus in C++: a Description makes a Robot, whose methods are the functions of a state under the names that they have in Python.
//
//   sarrus::Robot robot(description);                  throws ModelError
//   robot.inverse_dynamics(q, v, a)                    inputs in the order of kernels/operation_list.hpp, optional ones left out at the end;
//   robot.jacobian(q, "tool")                          then the frame where there is one, and any number of wrenches
//   robot.simulation(plan).run_fixed(clock, row)       from row = robot.simulation(plan).begin(state): see simulation/driver.hpp
//
// Matrices are row by row. A Robot is constant, and any number of threads may ask it.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "elements/list.hpp"
#include "kernels/kernels.hpp"
#include "kernels/operation_sizes.hpp"
#include "mechanism/mechanism.hpp"
#include "simulation/driver.hpp"
#include "simulation/events.hpp"

extern "C" const sarrus::KernelTable* sarrus_kernel_table();

namespace sarrus {

using Numbers = std::vector<double>;

/// There is no answer: the state contradicts the constraints, or nothing has inertia along a freedom.
struct NoAnswer : std::domain_error {
  using std::domain_error::domain_error;
};

/// From outside, on a frame, in its axes: [moment; force] [N m, N].
struct Wrench {
  std::string frame;
  std::array<double, 6> value;
};

/// Of a thin uniform rod between two points of the body.
inline Inertia<double> rod(double mass, const Vec3<double>& a, const Vec3<double>& b) {
  const Sym3<double> aa = symmetric_product(a, a), bb = symmetric_product(b, b), ab = symmetric_product(a, b);
  const auto second = [&](double Sym3<double>::* k) { return mass / 6.0 * (aa.*k + bb.*k + ab.*k); };  // of the Euler tensor
  using S = Sym3<double>;
  const double xx = second(&S::xx), yy = second(&S::yy), zz = second(&S::zz);
  return {mass, (a + b) * (0.5 * mass), {yy + zz, -second(&S::xy), -second(&S::xz), xx + zz, -second(&S::yz), xx + yy}};
}

/// A joint along one axis, between a point of the parent and one of the child, whose axes are parallel at zero.
inline JointDescription joint(JointKind kind, std::string name, std::string parent, std::string child, const Vec3<double>& axis,
                              const Vec3<double>& at_parent = zero3<double>(), const Vec3<double>& at_child = zero3<double>()) {
  JointDescription j{};
  j.name = std::move(name), j.parent = std::move(parent), j.child = std::move(child);
  j.kind = kind, j.axis = axis, j.axis2 = axis, j.nq = j.nv = 1;
  j.at_parent = {Mat3<double>::Identity(), at_parent}, j.at_child = {Mat3<double>::Identity(), at_child};
  for (auto* passive : {&j.armature, &j.damping, &j.friction, &j.stiffness, &j.rest}) passive->assign(1, 0.0);
  return j;
}

class Robot : public Mechanism {
 public:
  using Mechanism::Mechanism;

#define SARRUS_METHOD(name, inputs, axes, facts)                                        \
  template <class... Given> Numbers name(const Given&... given) const {                 \
    using namespace fact;                                                               \
    Call call{*this, #name, inputs, ((facts) & at_frame) != 0, ((facts) & loads) != 0}; \
    (call.add(given), ...);                                                             \
    return call.result(static_cast<int>(Operation::name), axes);                        \
  }
  SARRUS_OPERATIONS(SARRUS_METHOD)
#undef SARRUS_METHOD

  /// The plan stays the caller's, and so do the numbers of its force elements.
  Simulation simulation(const Plan& plan, const double* parameters = nullptr) const {
    return {sarrus_kernel_table()->simulation, tree(), plan, parameters};
  }

 private:
  struct Call {
    const Robot& robot;
    std::string name, inputs;
    bool has_frame, has_wrenches;
    const double* in[max_inputs] = {};
    int count = 0;
    std::vector<Frame> frame{}, wrench_frame{};
    std::vector<const double*> wrench{};

    [[noreturn]] void fail(const std::string& what) const { throw std::invalid_argument(name + "(" + inputs + "): " + what); }

    void add(const Numbers& x) {
      std::size_t at = 0;
      for (int k = 0; k < count && at != std::string::npos; ++k) at = inputs.find(' ', at + 1);
      if (at == std::string::npos) fail("more inputs than it takes");
      const std::string input = inputs.substr(at + (at > 0), inputs.find_first_of(" ?", at + 1) - at - (at > 0));
      const std::size_t size = static_cast<std::size_t>(size_of_input(input, robot.tree()));
      if (x.size() != size) fail(input + " has " + std::to_string(x.size()) + " entries; it needs " + std::to_string(size));
      in[count++] = x.data();
    }
    void add(const char* frame_name) {
      if (!has_frame) fail("it takes no frame");
      frame.push_back(robot.frame(frame_name));
    }
    void add(const Wrench& w) {
      if (!has_wrenches) fail("it takes no wrenches");
      wrench_frame.push_back(robot.frame(w.frame)), wrench.push_back(w.value.data());
    }

    Numbers result(int operation, const std::string& axes) const {
      std::size_t required = 0, size = 1;
      for (std::size_t at = 0; at < inputs.size(); at = std::min(inputs.find(' ', at), inputs.size() - 1) + 1)
        required += inputs[std::min(inputs.find(' ', at), inputs.size()) - 1] != '?';
      if (static_cast<std::size_t>(count) < required) fail("it was given " + std::to_string(count) + " inputs");
      if (has_frame && frame.size() != 1) fail("it needs the name of a frame");
      for (const char axis : axes) size *= static_cast<std::size_t>(size_of_axis(axis, robot.tree()));
      Numbers out(size);
      const Parameters parameters = {has_frame ? frame[0] : Frame{}, static_cast<int>(wrench.size()), wrench_frame.data(), true};
      const double status = sarrus_kernel_table()->one[operation](robot.tree(), parameters, in, wrench.data(), out.data());
      if (status != 0.0)
        throw NoAnswer(name + "() has no answer in this state: status " + std::to_string(static_cast<int>(status)));
      return out;
    }
  };

  Frame frame(const std::string& name) const {
    const auto at = frames().find(name);
    if (at == frames().end()) throw std::invalid_argument("no frame is named '" + name + "'");
    return {at->second.link, at->second.body, at->second.X, ExpressedIn::frame};
  }
};

}  // namespace sarrus
