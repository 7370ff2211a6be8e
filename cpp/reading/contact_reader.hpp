// Contacts of a task controller, from named arguments.
#pragma once

#include <string>
#include <vector>

#include "rigid_groups.hpp"
#include "task_context.hpp"

namespace sarrus::reading {

class ContactReader {
 public:
  ContactReader(const TaskContext& context, const Element& contact) : context_(context), contact_(contact) {}

  TaskContact read() const {
    const bool point = contact_.kind == "PointContact";
    if (!point && contact_.kind != "SurfaceContact")
      throw ModelError("no contact of a controller is named '" + contact_.kind + "'; there are: PointContact, SurfaceContact");
    const Argument& frame = at("frame");
    subject_ = contact_.name + " of '" + text(frame) + "'";
    TaskContact c;
    c.frame = context_.task_frame(frame);
    c.friction = constant(label("friction"), at("friction")), c.damping = constant(label("damping"), at("damping"));
    if (c.friction < 0.0 || c.damping < 0.0)
      throw ModelError("friction and damping of " + subject_ + " must not be negative; got " + shortest(c.friction) + " and " +
                       shortest(c.damping));
    c.half_x = c.half_y = 0.0;
    if (point)
      read_point(c);
    else
      read_surface(c);
    if (!at("stands").is_none()) c.stands = to_law(label("stands"), at("stands"));
    return c;
  }

 private:
  const Argument& at(const std::string& key) const {
    static const Argument::Named usual = {{"friction", 0.7},      {"normal", "z"}, {"damping", 20.0},     {"stands", Argument()},
                                          {"offset", Argument()}, {"radius", 0.0}, {"within", Argument()}};
    if (const Argument* x = find_argument(contact_.arguments, key)) return *x;
    static const Argument none, zero = 0.0;
    if (key == "torsion") return contact_.kind == "PointContact" ? zero : none;
    const Argument* x = find_argument(usual, key);
    if (!x) throw ModelError(contact_.name + " needs the argument '" + key + "'");
    return *x;
  }
  std::string label(const char* key) const { return std::string(key) + " of " + subject_; }

  void read_point(TaskContact& c) const {
    const bool plane = !at("offset").is_none();
    // the default is that of method="contact"
    const double within = at("within").is_none() ? 1e-3 * context_.tree.length : constant(label("within"), at("within"));
    c.radius = constant(label("radius"), at("radius"));
    if (plane) c.offset = constant(label("offset"), at("offset"));
    if (c.radius < 0.0 || within < 0.0)
      throw ModelError("radius and within of " + subject_ + " must not be negative; got " + at("radius").shown() + " and " +
                       shortest(within));
    if (!plane && !at("within").is_none())
      throw ModelError("within of " + subject_ + " is a distance from a plane: also pass the plane's offset");
    c.within = plane ? within : HUGE_VAL;
    c.torsion = constant(label("torsion"), at("torsion"));
    if (c.torsion < 0.0 || (c.torsion > 0.0 && c.friction == 0.0))
      throw ModelError("torsion of " + subject_ + " must not be negative, and needs friction; got " + at("torsion").shown());
    c.world_axes = axis_frame(unit_direction(at("normal")));
    c.rows = !(c.friction > 0.0) ? 1 : c.torsion > 0.0 ? 4 : 3;
  }
  void read_surface(TaskContact& c) const {
    const Numbers size = real_numbers(label("size"), at("size"));
    const bool sound = size.shape == std::vector<std::size_t>{2} && size.numbers[0] > 0.0 && size.numbers[1] > 0.0 &&
                       all_of(size, is_finite_number);
    c.torsion = sound ? c.friction * 0.5 * std::min(size.numbers[0], size.numbers[1]) : 0.0;
    if (!at("torsion").is_none()) c.torsion = constant(label("torsion"), at("torsion"));
    if (!sound || c.torsion < 0.0)
      throw ModelError("size of " + subject_ + " must be two positive lengths, and torsion not negative; got " +
                       at("size").shown() + " and " + at("torsion").shown());
    c.half_x = 0.5 * size.numbers[0], c.half_y = 0.5 * size.numbers[1];
    c.rows = 6;
  }

  const TaskContext& context_;
  const Element& contact_;
  mutable std::string subject_;
};

/// Add the names of the sides of a contact's cone.
void add_cone_names(const TaskContact& contact, const std::string& frame, std::vector<std::string>& names) {
  names.push_back("contact of '" + frame + "' pulls");
  if (contact.rows > 1)
    for (const char* axis : {"x", "x", "y", "y"}) names.push_back("friction of '" + frame + "' along " + axis);
  if (contact.rows == 6)
    for (const char* axis : {"y", "y", "x", "x"})
      names.push_back("centre of pressure along " + std::string(axis) + " of '" + frame + "'");
  if (contact.rows == 4 || contact.rows == 6) names.insert(names.end(), 2, "torsion of '" + frame + "'");
}

/// Form groups of the contacts of each rigid body, and set their damping to the mean of the group.
void group_contacts(const TaskContext& of, std::vector<TaskContact>& contacts, const std::vector<Element>& described) {
  if (contacts.size() < 2) return;
  std::vector<Frame> frames;
  for (const Element& contact : described) {
    const PlacedFrame& at = of.frame(*find_argument(contact.arguments, "frame"));
    frames.push_back({at.link, at.body, at.X, ExpressedIn::world_aligned});
  }
  const std::vector<int> first = RigidGroups(of.model, std::move(frames)).first();
  for (std::size_t g = 0; g < contacts.size(); ++g) {
    std::vector<int> members;
    double damping = 0.0;
    for (std::size_t k = 0; k < contacts.size(); ++k)
      if (first[k] == static_cast<int>(g)) members.push_back(static_cast<int>(k)), damping += contacts[k].damping;
    if (members.size() < 2) continue;
    for (const int k : members) contacts[k].together = members;
    for (const int k : members) contacts[k].damping = damping / static_cast<double>(members.size());
  }
}

}  // namespace sarrus::reading
