// Beam as a chain of rigid pieces and springs (finite segments), for small strains and large rotations. Winget and Huston 1976; Wittbrodt,
// Adamiec-Wojcik and Wojciech 2006.
//
//   pieces      k = 0 ... n, with body frames at the nodes x = k h, h = length / n; the first and the last have half the length
//   joints      k = 1 ... n, at the centres of the elements: a gimbal with a spring along each coordinate that is not rigid
//   stiffness   EA / h, GJ / h, EI / h, and 1 / (h / GA + h^3 / (12 EI)) along y and z
//
// About its centre, an element of a Timoshenko beam has this diagonal flexibility: a force at the centre bends both halves by h^3 / (12 EI), and does
// not turn one end relative to the other. Therefore small static displacements of the nodes are exact for loads at nodes, if there are springs along y
// and z. Without them, the deflection by a force at the end is too small by the fraction 1 / (4 n^2).
#include <cmath>

#include "../mechanism/errors.hpp"
#include "builder.hpp"
#include "text.hpp"

namespace sarrus::model {
namespace {

constexpr int most_elements = 1000;

void check_beam(const Beam& beam, const std::string& subject) {
  const auto check = [&](const std::string& key, double x, bool zero, bool infinite) {
    if (std::isnan(x) || (!infinite && std::isinf(x)) || x < 0.0 || (!zero && x == 0.0))
      throw ModelError(subject + ": " + key + (zero ? " must be finite, and not negative" : " must be positive and finite") +
                       "; got " + shown(x));
  };
  const auto check_pair = [&](const std::string& key, const Beam::Pair& pair, bool zero, bool infinite) {
    for (const std::optional<double>& x : pair)
      if (x) check(key, *x, zero, infinite);
  };
  check("length", beam.length, false, false), check("mass_per_length", beam.mass_per_length, false, false);
  check_pair("EI", beam.EI, false, false), check_pair("GA", beam.GA, false, true), check_pair("EA", {beam.EA}, false, false);
  check_pair("GJ", {beam.GJ}, false, false), check_pair("rotary_inertia", beam.rotary_inertia, true, false);
  check("damping", beam.damping, true, false);
  if (beam.elements < 1 || beam.elements > most_elements)
    throw ModelError(subject + ": elements must be from 1 to " + std::to_string(most_elements) + "; got " +
                     std::to_string(beam.elements));
}

/// Return the joint between two pieces. A joint of one coordinate is a Revolute or a Prismatic, which all file formats have.
JointType element_joint(const Beam& beam, const std::string& subject) {
  const double h = beam.length / beam.elements;
  Value::List free;
  std::vector<double> stiffness, damping;
  const auto add = [&](const char* coordinate, const std::optional<double>& modulus, double flexibility = 0.0) {
    if (!modulus || (std::isinf(*modulus) && flexibility == 0.0)) return;
    const double k = 1.0 / (h / *modulus + flexibility);
    if (!std::isfinite(k) || !std::isfinite(beam.damping * k))
      throw ModelError(subject + ": the spring along " + coordinate + " of an element must be finite; got " + shown(k) +
                       ". None instead of a number makes the beam rigid in this direction");
    free.emplace_back(coordinate), stiffness.push_back(k), damping.push_back(beam.damping * k);
  };
  const auto bending = [&](const std::optional<double>& EI) { return EI ? h * h * h / (12.0 * *EI) : 0.0; };
  add("rx", beam.GJ), add("ry", beam.EI[0]), add("rz", beam.EI[1]), add("tx", beam.EA);
  add("ty", beam.GA[0], bending(beam.EI[1])), add("tz", beam.GA[1], bending(beam.EI[0]));
  if (free.empty())
    throw ModelError(subject + " is rigid, because none of EI, GA, EA and GJ is finite; expected a number for at least one");
  Value::Object fields = {{"stiffness", stiffness}};
  if (beam.damping > 0.0) fields.emplace_back("damping", damping);
  if (free.size() > 1) return fields.emplace_back("free", free), joint_type("Gimbal", fields);
  const std::string only = free[0].text();
  return only[0] == 'r' ? revolute(only.substr(1), fields) : prismatic(only.substr(1), fields);
}

}  // namespace

Description Builder::beam(const Beam& beam) const {
  if (beam.name.empty()) throw ModelError("a beam needs a name; got ''");
  check_printable("beam", beam.name);
  const std::string subject = "beam '" + beam.name + "'";
  check_beam(beam, subject);
  const JointType joint = element_joint(beam, subject);
  const double h = beam.length / beam.elements, Jy = beam.rotary_inertia[0].value_or(0.0),
               Jz = beam.rotary_inertia[1].value_or(0.0);
  if (beam.GJ && Jy + Jz == 0.0)
    throw ModelError(subject + " can twist, but has no inertia about its axis; expected rotary_inertia with GJ, got 0");

  const auto part = [&](const std::string& suffix) { return beam.name + "_" + suffix; };
  const auto piece = [&](int k) { return part(std::to_string(k)); };
  Description parts;
  for (int k = 0; k <= beam.elements; ++k) {
    const double start = k > 0 ? -h / 2.0 : 0.0, end = k < beam.elements ? h / 2.0 : 0.0, length = end - start;
    Inertia inertia = rod(beam.mass_per_length * length, {start, 0.0, 0.0}, {end, 0.0, 0.0});
    inertia.about_com.diagonal() += vec3(Jy + Jz, Jy, Jz) * length;
    parts.bodies.push_back({piece(k), inertia});
    Joint j{part("clamp"), fixed(), beam.parent, piece(0), beam.at_parent, Transform<double>::identity(), false, true, false, {}};
    if (k > 0) {
      j.name = part("element_" + std::to_string(k)), j.joint = joint, j.parent = piece(k - 1), j.child = piece(k);
      j.at_parent = Placement(h / 2.0, 0.0, 0.0).X, j.at_child = Placement(-h / 2.0, 0.0, 0.0).X;
    }
    parts.joints.push_back(std::move(j));
  }
  parts.frames = {{part("start"), piece(0)}, {part("end"), piece(beam.elements)}};

  Builder trial = *this;  // so that an error in one part leaves no others behind
  for (const Body& body : parts.bodies) trial.add(body);
  for (const Joint& each : parts.joints) trial.add(each, true);
  for (const Frame& frame : parts.frames) trial.add(frame);
  return parts;
}

void Builder::add(const Beam& described) {
  const Description parts = beam(described);
  for (const Body& body : parts.bodies) add(body);
  for (const Joint& joint : parts.joints) add(joint, true);
  for (const Frame& frame : parts.frames) add(frame);
}

}  // namespace sarrus::model
