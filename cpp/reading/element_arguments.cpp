// Arguments of force elements, and their default values.
#include <map>
#include <string>

#include "checks.hpp"
#include "kinds.hpp"

namespace sarrus {
namespace {

using namespace reading;
using ByKind = std::map<std::string, Argument::Named>;

const Argument required = Argument::Other(), none;

/// Return the arguments of contacts and stops whose arguments are not the fields of their structs, or have default values.
ByKind arguments_of_contacts() {
  return {{"CompliantContact",
           {{"frame", required},
            {"radius", 0.0},
            {"normal", "z"},
            {"offset", 0.0},
            {"stiffness", 1e5},
            {"exponent", 1.5},
            {"dissipation", 0.5},
            {"friction", 0.6},
            {"slip_velocity", 1e-3},
            {"height", none},
            {"along", "x"}}},
          {"RigidContact",
           {{"frame", required},
            {"radius", 0.0},
            {"on", "ground"},
            {"normal", "z"},
            {"offset", 0.0},
            {"friction", 0.6},
            {"restitution", 0.0},
            {"torsional_friction", 0.0},
            {"rolling_friction", 0.0},
            {"restitution_law", "newton"}}},
          {"PinClearance",
           {{"frame", required},
            {"on", required},
            {"clearance", required},
            {"radius", required},
            {"stiffness", required},
            {"exponent", 1.5},
            {"dissipation", 0.5},
            {"friction", 0.0},
            {"slip_velocity", 1e-3},
            {"axis", "z"}}},
          {"EndStop", {{"joint", required}, {"limits", none}, {"stiffness", none}, {"damping", none}, {"index", 0}}},
          {"CollisionContacts",
           {{"scene", required},
            {"bodies", required},
            {"coefficients", required},
            {"pairs", none},
            {"friction", none},
            {"restitution", none},
            {"torsional_friction", none},
            {"rolling_friction", none},
            {"restitution_law", "newton"}}}};
}

/// Return such arguments of all other elements.
ByKind arguments_of_controllers() {
  const Argument no_limits = {-infinity, infinity};
  const Argument::Named tracking = {{"targets", required}, {"proportional", 100.0}, {"derivative", 20.0}},
                        table = {{"times", required}, {"u", required}, {"joints", none}};
  return {
      {"PID",
       {{"joint", required},
        {"proportional", 0.0},
        {"integral", 0.0},
        {"derivative", 0.0},
        {"target", 0.0},
        {"limits", no_limits},
        {"index", 0}}},
      {"FeedforwardEffort", {{"joint", required}, {"law", required}, {"index", 0}}},
      {"ComputedTorque", tracking},
      {"PDPlus", tracking},
      {"GravityCompensation", {{"scale", 1.0}}},
      {"LuGreFriction",
       {{"joint", required},
        {"sliding", required},
        {"sticking", none},
        {"stribeck_velocity", 0.01},
        {"stiffness", 1e4},
        {"damping", none},
        {"index", 0}}},
      {"Thruster", {{"frame", required}, {"thrust", required}, {"axis", "x"}, {"limits", {0.0, infinity}}}},
      {"AppliedWrench", {{"frame", required}, {"wrench", required}, {"scale", 1.0}, {"expressed_in", "frame"}}},
      {"ActuatorModel",
       {{"joint", required},
        {"time_constant", none},
        {"natural_frequency", none},
        {"damping_ratio", 0.7},
        {"torque_speed", none},
        {"gear_ratio", 1.0},
        {"index", 0}}},
      {"ReactionWheel",
       {{"joint", required}, {"torque", 0.0}, {"torque_limit", infinity}, {"momentum_limit", infinity}, {"inertia", none}}},
      {"Bushing", {{"frame", required}, {"on", required}, {"stiffness", required}, {"damping", 0.0}, {"preload", 0.0}}},
      {"GasSpring",
       {{"frame", required},
        {"on", required},
        {"extended_length", required},
        {"stroke", required},
        {"force", required},
        {"progression", 1.3},
        {"exponent", 1.0},
        {"damping", 0.0},
        {"friction", 0.0},
        {"slip_velocity", 1e-2},
        {"stop_stiffness", none},
        {"stop_damping", none}}},
      {"EffortTable", table},
      {"ZeroOrderHold", table},
      {"SampleAndHold", {{"controllers", required}, {"calls", false}, {"period", 1e-3}, {"delay", 0.0}, {"quantisation", none}}}};
}

}  // namespace

Argument::Named element_arguments(const std::string& kind) {
  static const ByKind contacts = arguments_of_contacts(), controllers = arguments_of_controllers();
  for (const ByKind* special : {&contacts, &controllers})
    if (const auto at = special->find(kind); at != special->end()) return at->second;
  Argument::Named all;
  order_of_kind(kind);
  each_kind([&](auto each) {
    if (kind != each.name) return;
    bool has_index = false;
    each.fields([&](const char* key, auto& member, auto...) {
      using Member = std::decay_t<decltype(member)>;
      all.emplace_back(key, required);
      has_index |= std::is_same_v<Member, JointCoordinate> || std::is_same_v<Member, JointVelocity>;
    });
    if (has_index) all.emplace_back("index", 0);
  });
  return all;
}

int order_of_kind(const std::string& kind) {
  int order = 0, at = -1;
  each_kind([&](const auto& each) {
    if (kind == each.name) at = order;
    ++order;
  });
  if (at < 0) throw ModelError("no force element is named '" + kind + "'");
  return at;
}

}  // namespace sarrus
