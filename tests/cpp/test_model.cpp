// Mechanisms described in C++: checks and names of Builder, and JSON, read and written.
// tests/core/test_model.py builds and runs this program with a document that contains every kind of part.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "../../cpp/mechanism/mechanism.hpp"
#include "../../cpp/model/builder.hpp"
#include "../../cpp/model/contacts.hpp"
#include "../../cpp/model/text.hpp"

namespace {

using namespace sarrus;

int checks = 0, failures = 0;
void check(bool ok, const std::string& what) {
  ++checks;
  if (!ok) ++failures, std::printf("FAILED: %s\n", what.c_str());
}

/// Return the message of an expected error.
template <class F> std::string refusal(F attempt) {
  try {
    attempt();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was refused";
}
template <class F> void check_refused(F attempt, const std::string& message) {
  const std::string got = refusal(attempt);
  check(got == message, "expected \"" + message + "\"; got \"" + got + "\"");
}

Builder four_bar() {
  Builder b("four-bar");
  for (const auto& [name, length] : {std::pair<const char*, double>{"crank", 0.4}, {"coupler", 1.1}, {"rocker", 0.9}})
    b.add_body(name, rod(1.0, {0.0, 0.0, 0.0}, {length, 0.0, 0.0}));
  b.add_joint("motor", revolute("y"), "ground", "crank", {}, {}, actuated);
  b.add_joint("pin1", revolute("y"), "crank", "coupler", {0.4, 0.0, 0.0});
  b.add_frame("fixture", "ground", {1.0, 0.0, 0.0});
  b.add_joint("pivot", revolute("y"), "fixture", "rocker");
  b.add_joint("pin2", revolute("y"), "coupler", "rocker", {1.1, 0.0, 0.0}, {0.9, 0.0, 0.0});
  return b;
}

void test_mechanism() {
  const Builder b = four_bar();
  const Mechanism robot(model::core_description(b.complete()));
  check(robot.tree().nq == 3 && robot.tree().loops.rows == 5, "a loop of four bodies");
  check(robot.joints()[model::joint_index(b.description(), "pin2")].closes_a_loop, "the joint that closes it");
  check(b.description().joints[2].parent == "ground" && b.description().joints[2].at_parent.p(0) == 1.0, "a joint on a frame");
  check(std::abs(robot.mass() - 3.0) < 1e-15, "its mass");
}

void test_transmissions() {
  Builder b = four_bar();
  model::Transmission belt{"belt", {"left", "right"}, {{"motor"}, {"pivot"}}, {{3.0, 0.0}, {2.0, -1.0}}};
  belt.properties = {{"rotor_inertia", {1e-4, 2e-4}}, {"limits", {-1.0, 1.0}}}, belt.offset = {0.0, 0.5};
  b.add_transmission(belt);
  const model::Description& d = b.description();
  const model::Joint& right = d.joints.back();
  check(!d.joints[0].actuated && d.joints[0].tree && right.actuated && right.name == "right", "motors in the joints' stead");
  check(right.joint.armature[0] == 2e-4 && right.joint.limits->second[0] == 1.0 && right.child == "right_rotor", "a rotor");
  check(model::motors_of(d).size() == 2 && model::motors_of(d)[1].second->name == "belt_right", "its coupler");
  const model::JointCoordinates q = model::with_motors(d, {{"motor", {0.2}}, {"left", {7.0}}});
  check(q.size() == 3 && q[2].first == "right" && std::abs(q[2].second[0] - 0.9) < 1e-15, "a motor follows the joints");
  belt.motors = {"a", "b"}, belt.matrix[1] = {0.0, 0.0};
  check_refused([&] { b.add_transmission(belt); },
                "transmission 'belt': the row of motor 'b' in matrix has only zeros; expected a ratio to at least one joint");
  check(d.joints.size() == 6, "nothing was changed");
}

void test_refusals() {
  Builder b = four_bar();
  b.add_coupler("gear", {{"motor", 0, {1.0}}, {"pin1", 0, {2.0, 0.5}}});
  check_refused([&] { b.add_body("crank"); }, "two bodies are named 'crank'");
  check_refused([&] { b.add_joint("gear", fixed(), "ground", "crank"); }, "a joint and a constraint are both named 'gear'");
  check_refused([&] { b.add_frame("tip", "crnk"); }, "frame 'tip': no body is named 'crnk'; did you mean 'crank'?");
  check_refused([&] { b.add_joint("j", revolute("y"), "crank", "crank"); }, "joint 'j' connects body 'crank' to itself");
  check_refused([&] { b.add_distance("rod", {"crank"}, {"rocker"}, 0.0); },
                "constraint 'rod': length must be positive; got 0.0; for two points that coincide use a Spherical joint");
  check_refused([&] { b.add_spring("s", {"crank", {NAN, 0.0, 0.0}}, {"ground"}, 1.0, 1.0); },
                "spring 's': first point needs three finite numbers [m]; got (nan, 0.0, 0.0)");
  check_refused([&] { b.add_coupler("g", {{"motor", 1, {1.0}}}); },
                "constraint 'g': joint 'motor' (Revolute) has 1 coordinates; index 1 is out of range");
  check_refused([&] { b.add_coupler("g", {{"motor", 0, {1.0}}, {"motor", 0, {2.0}}}); },
                "constraint 'g' names coordinate 0 of joint 'motor' twice");
  check_refused([&] { b.set_home({{"motor", {0.0, 1.0}}}); }, "home: joint 'motor' needs one finite number; got (0.0, 1.0)");
  check_refused([&] { b.add_frame("a\x1b", "crank"); }, "a frame needs a name that can be printed; 'a\\x1b' contains U+001B");
  check_refused([&] { b.add_body("heavy", {1.0, zero3<double>(), Mat3<double>(vec3(1.0, 2.0, HUGE_VAL).asDiagonal())}); },
                "about_com = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, inf]] is not finite");
  check_refused([&] { revolute("w"); }, "an axis must be 'x', 'y' or 'z', one of these with a minus, or three numbers; got 'w'");
  check_refused([&] { revolute("y", {{"damping", -1.0}}); }, "Revolute: damping cannot be negative; got -1.0");
  check_refused([&] { revolute("y", {{"limits", {1.0, -1.0}}}); }, "Revolute: lower limit 1.0 is above upper limit -1.0");
  check_refused([&] { joint_type("Hinge", {}); },
                "no joint type is named 'Hinge'; there are: Cable, Cylindrical, Fixed, Free, Gimbal, "
                "Helical, Planar, Prismatic, Revolute, Spherical, Universal");
  check_refused([&] { joint_type("Helical", {{"axis", "z"}}); }, "Helical needs the parameter 'pitch'");
  check_refused([&] { model::joint_index(b.description(), "pin"); }, "no joint is named 'pin'; did you mean 'pin2'?");
  check_refused([] { Builder().complete(); }, "a mechanism needs at least one body");
  check_refused(
      [] {
        Builder lonely;
        lonely.add_body("a"), lonely.add_joint("j", free_joint(), "ground", "b");
        lonely.complete();
      },
      "joint 'j' refers to body 'b', which does not exist; there are: a, ground");
  check(b.description() == Builder(b.description()).description() && b.description().bodies.size() == 3, "nothing was changed");
}

void test_beam() {
  Builder b("cantilever");
  Beam beam;
  beam.name = "beam", beam.parent = "ground", beam.length = 2.0, beam.mass_per_length = 3.0, beam.elements = 4;
  beam.EI = {6.0, std::nullopt}, beam.GA = {std::nullopt, HUGE_VAL}, beam.damping = 0.1;
  b.add(beam);
  const model::JointType& element = b.description().joints.back().joint;
  check(text_of(element) == "Gimbal(('ry', 'tz'), [0, 0, 0, 0, 0, 0], damping=[1.2, 57.6], stiffness=[12, 576])",
        "springs of an element: " + text_of(element));
  const Mechanism robot(model::core_description(b.complete()));
  check(robot.tree().nq == 8 && std::abs(robot.mass() - 6.0) < 1e-15, "coordinates and mass of a beam");
  check(b.description().frames[1].name == "beam_end" && b.description().frames[1].body == "beam_4", "its end");
  check_refused([&] { b.add(beam); }, "two bodies are named 'beam_0'");
  beam.name = "other", beam.EI[0] = -1.0;
  check_refused([&] { b.add(beam); }, "beam 'other': EI must be positive and finite; got -1.0");
  check(b.description().bodies.size() == 5, "an error adds no part");
}

void test_identity() {
  Builder one = four_bar(), other = four_bar();
  one.warn("nobody has weighed it");
  check(one.description() == other.description() && hash(one.description()) == hash(other.description()), "equality by content");
  other.set_configuration("up", {{"motor", {1.0}}});
  check(one.description() != other.description() && hash(one.description()) != hash(other.description()), "and by no less");
  check(model::named_configuration(other.description(), "up")[0].second[0] == 1.0, "a configuration by its name");
}

void test_inertias() {
  const model::Inertia solid = box(12.0, {1.0, 2.0, 3.0}), thick = rod(2.0, {0.0, 0.0, -1.5}, {0.0, 0.0, 1.5}, 0.5);
  check((solid.about_com.diagonal() - vec3(13.0, 10.0, 5.0)).norm() < 1e-14, "a box");
  check((thick.about_com - cylinder(2.0, 0.5, 3.0).about_com).norm() < 1e-15, "a rod is a cylinder");
  check(std::abs(sphere(5.0, 2.0).about_com(0, 0) - 8.0) < 1e-14, "a sphere");
  check_refused([] { sphere(1.0, -2.0); }, "radius = -2 is negative");
}

void test_touching_pairs() {
  Builder b = four_bar();
  const auto add = [&](const char* name, const char* body, model::ContactShape shape, std::optional<double> friction = {}) {
    model::Shape s;
    s.name = name, s.body = body, s.shape = std::move(shape), s.friction = friction, s.group = std::string("all of ") + body;
    b.add(std::move(s));
  };
  add("floor", "ground", model::Plane{});
  add("end", "crank", model::Sphere{0.1}, 0.25);
  add("ball", "rocker", model::Sphere{0.1}, 1.0);
  add("skin", "coupler", model::Mesh{"skin.stl"});
  const auto pairs = [&] {
    std::string text;
    for (const model::TouchingPair& p : model::touching_pairs(b.description()))
      text += std::to_string(p.first) + "-" + std::to_string(p.second) + ":" + shortest(p.friction) + " ";
    return text;
  };
  check(pairs() == "0-1:0.25 0-2:1.0 0-3:1.0 1-2:0.5 ", "bodies that no joint connects, and the ground, touch: " + pairs());
  model::Contact apart, joined;
  apart.first = "all of ground", apart.second = "end", apart.touching = false;
  joined.first = "skin", joined.second = "end", joined.friction = 0.3;
  b.add(apart), b.add(joined);
  check(pairs() == "0-2:1.0 0-3:1.0 1-2:0.5 1-3:0.3 ", "settings of groups and of shapes: " + pairs());
  b.add_joint("weld", fixed(), "ground", "rocker");
  check(pairs() == "0-3:1.0 1-2:0.5 1-3:0.3 ", "a body that is welded to the ground: " + pairs());
}

void test_json(const std::string& text) {
  const Builder read = read_json(text);
  check(write_json(read.description()) == text, "what was read is written as it was");
  check(read_json(write_json(four_bar().description())).description() == four_bar().description(), "and the other way round");
  const auto& doubtful = model::doubtful(read.description());
  check(doubtful.size() == 2 && doubtful[1] == "limits of joint 'screw' look like degrees, but are read as radians: -720, 90",
        "limits in degrees");
  check_refused([] { read_json("{\"format\": 1,\n \"name\": }", "a.json"); },
                "a.json:2:10: not well-formed JSON: Expecting value");
  check_refused([] { read_json("{\"format\": 1, \"format\": 1}"); }, "<string>: the key \"format\" occurs twice in one object");
  check_refused([] { read_json("\"\xff\""); }, "<string>: cannot decode: byte 1 is not UTF-8");
  check_refused([] { read_json(std::string(100000, '[')); }, "<string>: is nested too deeply for a model");
  check_refused([] { load_builder("there is no such file"); }, "the file 'there is no such file' cannot be read");
  for (std::size_t n = 0; n < text.size(); n += 97)
    check(refusal([&] { read_json(text.substr(0, n)); })[0] == '<', "half a file");
}

void test_numbers() {
  for (const auto& [x, written] : {std::pair<double, const char*>{0.1, "0.1"},
                                   {1.0, "1.0"},
                                   {-0.0, "-0.0"},
                                   {1e16, "1e+16"},
                                   {123456789012345678.0, "1.2345678901234568e+17"},
                                   {1e15, "1000000000000000.0"},
                                   {0.0001, "0.0001"},
                                   {1.5e-5, "1.5e-05"},
                                   {5e-324, "5e-324"},
                                   {2.5, "2.5"},
                                   {1.0 / 3.0, "0.3333333333333333"},
                                   {1.7976931348623157e308, "1.7976931348623157e+308"}})
    check(shortest(x) == written, std::string(written) + " is written as " + shortest(x));
}

}  // namespace

int main(int, char** arguments) {
  std::stringstream text;
  text << std::ifstream(arguments[1]).rdbuf();
  test_mechanism(), test_transmissions(), test_beam(), test_refusals(), test_identity(), test_inertias(), test_touching_pairs(),
      test_json(text.str()), test_numbers();
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
