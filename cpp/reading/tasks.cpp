#include "tasks.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>

#include "../control/quadratic_programme.hpp"
#include "../joints/visit.hpp"
#include "../mobility/linear_algebra.hpp"
#include "../spatial/conversions.hpp"
#include "checks.hpp"
#include "contact_reader.hpp"
#include "limit_reader.hpp"
#include "task_context.hpp"

namespace sarrus {
namespace {

using namespace reading;

const char* const component_names[] = {"rx", "ry", "rz", "tx", "ty", "tz"};

/// Call visit(kind) for each kind of task, with default values.
template <int I = 0, class Visit> void each_task(Visit&& visit) {
  if constexpr (I < std::variant_size_v<AnyTask>) visit(std::variant_alternative_t<I, AnyTask>()), each_task<I + 1>(visit);
}

/// Reader of one task.
class TaskReader {
 public:
  TaskReader(TaskContext& context, const Element& task) : context_(context), task_(task), name_(task.name) {
    for (const char* key : {"frame", "joint", "on"})
      if (const Argument* about = find_argument(task.arguments, key)) {
        name_ += "('" + text(*about) + "')";
        break;
      }
    const Argument& hard = at("hard");
    if (!hard.is<bool>()) refuse("hard of " + name_, "be True or False", hard);
    const Numbers* priority = at("priority").get<Numbers>();
    if (!priority || !priority->shape.empty() || priority->numbers[0] < 0.0 ||
        priority->numbers[0] != std::floor(priority->numbers[0]))
      refuse("priority of " + name_, "be 0, 1, ...", at("priority"));
    is_hard_ = *hard.get<bool>(), priority_ = static_cast<int>(priority->numbers[0]);
  }

  const std::string& name() const { return name_; }
  bool is_hard() const { return is_hard_; }
  int priority() const { return priority_; }

  Task read(int level) {
    Task task{AnyTask(), level, {}};
    const std::string kind = kind_of_struct();
    bool exists = false;
    each_task([&](auto each) {
      if (kind != each.name) return;
      exists = true;
      prepare(each);
      // read components and coordinates first, because they determine the number of rows, on which other fields depend
      each.fields([&](const char* key, auto& member) {
        if (!set_.count(key)) place(key, member);
      });
      rows_ = each.rows();
      each.fields([&](const char* key, auto& member) {
        if (!set_.count(key)) number(key, member);
      });
      task.kind = std::move(each);
    });
    if (!exists) throw ModelError("no kind of task is named '" + task_.kind + "'");
    task.weight = row_numbers("weight", at("weight"), false);
    const Argument& weight = at("weight");
    if (!all_of(real_numbers("weight", weight), [](double w) { return w > 0.0; }))
      refuse("weight of " + name_, "be positive", weight);
    return task;
  }

 private:
  std::string label(const std::string& key) const { return key + " of " + name_; }

  std::string kind_of_struct() const {
    if (task_.kind == "RelativeTask") return "FrameTask";
    if (task_.kind == "JointTask" || task_.kind == "PostureTask") return "JointsTask";
    if (task_.kind == "ForceTask") return context_.contact_unknowns.count(text(at("on"))) ? "ContactForceTask" : "MultiplierTask";
    return task_.kind;
  }

  const Argument& at(const std::string& key) const {
    static const Argument::Named usual = {
        {"weight", 1.0},       {"hard", false},   {"priority", 0},         {"damping", "critical"},
        {"stiffness", 100.0},  {"axes", "world"}, {"reference", "ground"}, {"components", Argument()},
        {"gain", 10.0},        {"index", 0},      {"rows", Argument()},    {"integral", 0.0},
        {"wrench", Argument()}};
    if (const Argument* x = find_argument(derived_, key)) return *x;
    if (const Argument* x = find_argument(task_.arguments, key)) return *x;
    const Argument* x = find_argument(usual, key);
    if (!x || (task_.kind == "ImpedanceTask" && (key == "stiffness" || key == "damping")))
      throw ModelError(name_ + " needs the argument '" + key + "'");
    return *x;
  }

  // ---- fields that contain joints, frames and components

  void place(const char* key, TaskFrame& x) { x = context_.task_frame(at(key)); }
  void place(const char*, Components& x) { x = Components(components()); }
  template <class X> void place(const char*, X&) {}

  std::vector<int> components() const {
    const Argument& given = at("components");
    std::string names = "rx ry rz tx ty tz";
    if (given.is<std::string>()) {
      names = *given.get<std::string>();
    } else if (given.is_none()) {
      const Argument& target = at("target");
      const Numbers* x = target.get<Numbers>();
      const bool is_point =
          x ? !x->shape.empty() && x->shape.back() == 3 : target.is<Argument::List>() && target.items().size() == 3;
      if (is_point) names = "tx ty tz";
    } else {
      names = "";
    }
    std::vector<int> all;
    bool sound = true;
    for (std::size_t begin = 0; begin < names.size();) {
      const std::size_t end = std::min(names.find(' ', begin), names.size());
      const std::string name = names.substr(begin, end - begin);
      begin = end + 1;
      if (name.empty()) continue;
      const auto found = std::find(std::begin(component_names), std::end(component_names), name);
      const int component = static_cast<int>(found - std::begin(component_names));
      sound = sound && found != std::end(component_names) && !std::count(all.begin(), all.end(), component);
      all.push_back(component);
    }
    if (!sound || all.empty()) refuse(label("components"), "be from 'rx ry rz tx ty tz', each once", given);
    return all;
  }

  // ---- fields of its rows

  void number(const char* key, RowNumbers& x) {
    const bool any_sign = x.any_sign;
    const Argument& value = at(key);
    if (std::string(key) == "damping" && value.is<std::string>()) {
      if (*value.get<std::string>() != "critical") refuse(label(key), "be 'critical' or numbers", value);
      Numbers stiffness = real_numbers(label("stiffness"), at("stiffness"));
      for (double& each : stiffness.numbers) each = 2.0 * std::sqrt(each);
      x = row_numbers(key, std::move(stiffness), any_sign);
    } else {
      x = row_numbers(key, value, any_sign);
    }
    x.any_sign = any_sign;
  }
  void number(const char* key, Targets& x) { x = targets(label(key), each_target(key)); }
  void number(const char* key, std::optional<Targets>& x) {
    if (!at(key).is_none()) x = targets(label(key), each_target(key));
  }
  void number(const char* key, PoseTarget& x) { x = pose(label(key), at(key)); }
  void number(const char* key, std::vector<double>& x) { x = matrix(key); }
  void number(const char* key, bool& x) {
    const Argument& axes = at(key);
    const std::string* name = axes.get<std::string>();
    if (!name || (*name != "world" && *name != "target")) refuse(label(key), "be 'world' or 'target'", axes);
    x = *name == "target";
  }
  template <class X> void number(const char*, X&) {}  // other fields are read elsewhere

  RowNumbers row_numbers(const std::string& key, const Argument& value, bool any_sign) const {
    const auto rows = static_cast<std::size_t>(rows_);
    const Numbers x = real_numbers(label(key), value);
    const std::string n = std::to_string(rows);
    const auto& shape = x.shape;
    const bool several = shape.size() == 2 && (shape[1] == 1 || shape[1] == rows);
    if (!shape.empty() && shape != std::vector<std::size_t>{rows} && !several)
      throw ShapeError(label(key) + " must be a number, (" + n + ",) for its rows, or for many runs (runs, " + n +
                       ") or (runs, 1); got shape " + shape_text(shape));
    if (!all_of(x, is_finite_number) || (!any_sign && !all_of(x, [](double each) { return each >= 0.0; })))
      refuse(label(key), "be finite and not negative", value);
    const std::size_t width = shape.empty() ? 1 : shape.back();
    RowNumbers all{context_.to.parameters.width(), rows_};
    for (std::size_t r = 0; r < rows; ++r) {
      Numbers column;
      if (several) column.shape = {shape[0]};
      for (std::size_t k = width == 1 ? 0 : r; k < x.numbers.size(); k += width) column.numbers.push_back(x.numbers[k]);
      context_.column(column);
    }
    return all;
  }

  Argument::List each_target(const char* key) const {
    const Argument& value = at(key);
    Argument::List all = value.is_sequence() ? value.items() : Argument::List{value};
    if (static_cast<int>(all.size()) != rows_)
      throw ShapeError(label(key) + " must have a number or time function for each of " + std::to_string(rows_) +
                       " components; got " + value.shown());
    return all;
  }

  static bool has_laws(const Argument& value) {
    if (value.is<Law>()) return true;
    const Argument::List* items = value.get<Argument::List>();
    return items && std::any_of(items->begin(), items->end(), has_laws);
  }

  /// Add numbers, which may differ between runs, and functions of time.
  Targets targets(const std::string& label, const Argument::List& values) const {
    Targets all;
    all.first = context_.to.parameters.width();
    std::vector<Numbers> selections;
    for (const Argument& value : values) {
      if (!has_laws(value)) {
        const Numbers x = real_numbers(label, value);
        if (x.shape.size() > 1 || !all_of(x, is_finite_number))
          throw ShapeError(label + " must be a time function, a finite number, or one of these for each run; got " +
                           value.shown());
        context_.column(x), all.law.emplace_back();
        continue;
      }
      context_.column({{}, {0.0}});
      if (!value.is_sequence()) {
        all.law.emplace_back(to_law(label, value));
        continue;
      }
      Law law;
      Numbers selected{{value.items().size()}, {}};
      for (const Argument& item : value.items())
        selected.numbers.push_back(static_cast<double>(law.each.size())), law.each.push_back(to_law(label, item));
      law.parameter_index = all.first + static_cast<int>(values.size() + selections.size());
      selections.push_back(std::move(selected)), all.law.emplace_back(std::move(law));
    }
    for (const Numbers& selected : selections) context_.column(selected);
    return all;
  }

  PoseTarget pose(const std::string& label, const Argument& target) const {
    const std::vector<int> selected = components();
    const std::size_t n = selected.size();
    Argument::List slots(6, 0.0);
    const Numbers* x = target.get<Numbers>();
    const auto axes = x ? x->shape.size() : 0;
    const bool is_pose = axes >= 2 && x->shape[axes - 1] == 4 && x->shape[axes - 2] == 4;
    const bool listed = !is_pose && target.is_list();
    const std::size_t size = target.is_sequence() ? target.items().size() : 0;
    PoseTarget all;
    if (target.is<Argument::Function>()) {
      all.call = context_.to.law.call_numbers, context_.to.law.call_numbers += 24;
      context_.to.functions.push_back({static_cast<int>(context_.to.names.size()), all.call});
    } else if (listed && size == 6) {
      slots = target.items();
    } else if (listed && size == n) {
      if (text(at("axes")) == "target")
        throw ShapeError(label + " with axes='target' must be a full pose: numbers or time functions for all six components");
      for (std::size_t k = 0; k < n; ++k) slots[static_cast<std::size_t>(selected[k])] = target.items()[k];
    } else if (is_pose) {
      slots = pose_slots(label, target, *x);
    } else if (axes >= 1 && x->shape.back() == 3 && *std::min_element(selected.begin(), selected.end()) >= 3) {
      for (std::size_t k = 0; k < 3; ++k) slots[3 + k] = along_last(*x, 3, k);
    } else {
      throw ShapeError(
          label +
          " must be a pose (4, 4), a position (3,) for components of translation, a number or time function for each of its " +
          std::to_string(n) + " components or of all six, or a function of time; got " + target.shown());
    }
    all.numbers = targets(label, slots);
    return all;
  }
  /// Return entry k of the last axis, of this size.
  static Numbers along_last(const Numbers& x, std::size_t size, std::size_t k) {
    Numbers all{{x.shape.begin(), x.shape.end() - 1}, {}};
    for (std::size_t i = k; i < x.numbers.size(); i += size) all.numbers.push_back(x.numbers[i]);
    return all;
  }
  /// Return rotation vector and position of poses (..., 4, 4).
  static Argument::List pose_slots(const std::string& label, const Argument& target, const Numbers& x) {
    Numbers vectors{{x.shape.begin(), x.shape.end() - 2}, {}};
    vectors.shape.push_back(6);
    for (std::size_t begin = 0; begin < x.numbers.size(); begin += 16) {
      const double* pose = x.numbers.data() + begin;
      const bool last = pose[12] == 0.0 && pose[13] == 0.0 && pose[14] == 0.0 && pose[15] == 1.0;
      if (!last || !std::all_of(pose, pose + 16, is_finite_number))
        refuse(label, "be a finite pose with last row [0, 0, 0, 1]", target);
      Mat3<double> R;
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) R(i, j) = pose[4 * i + j];
      Vec3<double> turn;
      try {
        turn = log(model::rotation("the rotation", R));
      } catch (const ModelError& error) {
        throw ModelError(label + ": " + error.what());
      }
      for (int i = 0; i < 3; ++i) vectors.numbers.push_back(turn(i));
      for (int i = 0; i < 3; ++i) vectors.numbers.push_back(pose[4 * i + 3]);
    }
    Argument::List slots;
    for (std::size_t k = 0; k < 6; ++k) slots.push_back(along_last(vectors, 6, k));
    return slots;
  }

  /// Return a symmetric matrix (rows x rows).
  std::vector<double> matrix(const std::string& key) const {
    const auto n = static_cast<std::size_t>(rows_);
    const Argument& value = at(key);
    const Numbers x = real_numbers(label(key), value);
    const bool full = x.shape == std::vector<std::size_t>{n, n}, row = x.shape == std::vector<std::size_t>{n};
    const std::string size = std::to_string(n);
    if (!x.shape.empty() && !row && !full)
      throw ShapeError(label(key) + " must be a number, (" + size + ",) or (" + size + ", " + size + "); got " +
                       shape_text(x.shape));
    std::vector<double> all(n * n, 0.0);
    for (std::size_t i = 0; i < n * n; ++i)
      all[i] = full ? x.numbers[i] : i % (n + 1) == 0 ? x.numbers[row ? i / (n + 1) : 0] : 0.0;
    bool sound = all_of(x, is_finite_number);
    for (std::size_t i = 0; i < n * n; ++i) {
      const double other = all[i % n * n + i / n];
      sound = sound && std::abs(all[i] - other) <= 1e-8 + 1e-5 * std::abs(other);
    }
    if (!sound) refuse(label(key), "be symmetric and finite", value);
    return all;
  }

  // ---- kinds with arguments that are not fields, and further checks

  template <class Kind> void prepare(Kind& kind) {
    if constexpr (std::is_base_of_v<PoseFollower, Kind>) {
      if (text(at("frame")) == text(at("reference")))
        throw ModelError(name_ + ": frame and reference are both '" + text(at("reference")) + "'; they must differ");
    }
    prepare_kind(kind);
  }
  template <class Kind> void prepare_kind(Kind&) {}
  void prepare_kind(ImpedanceTask& task) {
    rows_ = static_cast<int>(components().size());
    const std::vector<double> inertia = matrix("inertia");
    const Eigen::Map<const RowMajor> M(inertia.data(), rows_, rows_);
    const Eigen::LLT<Matrix> factor((Matrix(M)));
    if (factor.info() != Eigen::Success) refuse(label("inertia"), "be positive definite", at("inertia"));
    const RowMajor inverse = factor.solve(Matrix::Identity(rows_, rows_));
    task.mobility.assign(inverse.data(), inverse.data() + inverse.size());
    set_.insert("mobility");
  }
  void prepare_kind(CenterOfMassTask&) {
    if (at("components").is_none()) derived_.emplace_back("components", "tx ty tz");
    const std::vector<int> selected = components();
    if (*std::min_element(selected.begin(), selected.end()) < 3)
      refuse(label("components"), "be from 'tx ty tz'", at("components"));
    check_mass();
  }
  void prepare_kind(MomentumTask&) {
    if (at("components").is_none()) derived_.emplace_back("components", "rx ry rz tx ty tz");
    check_mass();
  }
  void check_mass() const {
    if (!(context_.mechanism.mass() > 0.0)) throw ModelError(name_ + " needs a mechanism with mass; got zero mass");
  }

  void prepare_kind(JointsTask& task) {
    Argument::List targets;
    const auto follow = [&](const NamedParts::PlacedJoint& joint, const Argument& index, Argument target) {
      task.coordinates.push_back(context_.task_coordinate(joint, index, task_.name));
      targets.push_back(std::move(target));
    };
    if (task_.kind == "JointTask") {
      follow(context_.joint(at("joint")), at("index"), at("target"));
    } else if (const Argument::Named* by_joint = at("targets").get<Argument::Named>()) {
      for (const auto& [name, value] : *by_joint) {
        const NamedParts::PlacedJoint joint = context_.joint(name);
        const int nv = joint.joint.nv;
        Argument::List each = value.items();
        if (!value.is_sequence() || (nv == 1 && each.size() != 1)) each = {value};
        if (static_cast<int>(each.size()) != nv)
          throw ShapeError("joint '" + name + "' has " + std::to_string(nv) + " coordinates; got " + std::to_string(each.size()) +
                           " targets of PostureTask");
        for (int k = 0; k < nv; ++k) follow(joint, k, each[static_cast<std::size_t>(k)]);
      }
    } else {
      const Numbers q = real_numbers("targets of PostureTask", at("targets"));
      const auto nq = static_cast<std::size_t>(context_.tree.nq);
      if (q.shape.empty() || q.shape.back() != nq)
        throw ShapeError("targets of PostureTask must be a mapping, a path, or q (" + std::to_string(nq) + ",); got shape " +
                         shape_text(q.shape));
      for (std::size_t j = 0; j < context_.mechanism.joints().size(); ++j) {
        const NamedParts::PlacedJoint joint = context_.joint(j);
        const model::JointType type = joint.type();
        bool rates = !joint.closes_loop && !type.has_quaternion();
        for (int k = 0; k < joint.joint.nv; ++k) rates = rates && type.is_rate(k);
        for (int k = 0; rates && k < joint.joint.nv; ++k)
          follow(joint, k, along_last(q, nq, static_cast<std::size_t>(joint.iq + k)));
      }
    }
    if (targets.empty()) throw ModelError(name_ + " has no targets; expected at least one joint");
    rows_ = static_cast<int>(targets.size());
    task.target = this->targets(label("target"), targets);
    set_.insert({"coordinates", "target"});
  }

  /// Return rows of a force task from indices of a range.
  std::vector<int> force_rows(int first, int count) {
    const Argument& given = at("rows");
    std::vector<int> rows;
    bool sound = true;
    if (given.is_none()) {
      for (int r = 0; r < count; ++r) rows.push_back(first + r);
    } else {
      const Numbers* x = given.get<Numbers>();
      sound = x && x->shape.size() == 1;
      for (const double r : sound ? x->numbers : std::vector<double>()) {
        sound = sound && r == std::floor(r) && r >= 0.0 && r < count;
        if (sound) rows.push_back(first + static_cast<int>(r));
      }
    }
    if (!sound || rows.empty()) refuse("rows of " + name_, "be indices below " + std::to_string(count), given);
    rows_ = static_cast<int>(rows.size());
    return rows;
  }
  void prepare_force(ForceTask& task) {
    const Argument& target = at("target");
    Argument::List each(static_cast<std::size_t>(rows_), target);
    if (target.is_list()) each = target.items();
    if (static_cast<int>(each.size()) != rows_)
      refuse(label("target"), "be a number or time function, or " + std::to_string(rows_) + " of these", target);
    task.target = targets(label("target"), each);
    set_.insert("target");
  }
  bool integrates() const {
    return !all_of(real_numbers(label("integral"), at("integral")), [](double x) { return x == 0.0; });
  }
  void prepare_kind(ContactForceTask& task) {
    const auto& [first, count] = context_.contact_unknowns[text(at("on"))];
    task.unknown = force_rows(first, count);
    if (integrates()) refuse(label("integral"), "be 0 for a contact, because the controller chooses its force", at("integral"));
    prepare_force(task);
    set_.insert("unknowns");
  }
  void prepare_kind(MultiplierTask& task) {
    const std::string on = text(at("on"));
    const std::vector<int>& all = context_.mechanism.constraints();
    int first = -1, count = 0;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      names.push_back(context_.mechanism.constraint_name(static_cast<int>(i)));
      const Constraint& c = context_.tree.loops.constraint[all[i]];
      if (names.back() == on) first = c.row, count = c.rows;
    }
    if (first < 0) no_such_name("constraint", on, std::move(names));
    task.row = force_rows(first, count);
    prepare_force(task);
    if (integrates()) task.state = context_.to.law.states, context_.to.law.states += rows_;
    set_.insert({"rows", "state"});
    std::vector<int> shared = shared_rows(context_.model, task.row);
    if (shared.empty()) return;
    std::sort(shared.begin(), shared.end());
    std::vector<std::string> listed;
    for (const int r : shared) listed.push_back(std::to_string(r - first));
    context_.to.warnings.push_back(
        name_ + ": the forces of rows [" + joined(listed) +
        "] are not unique, because redundant rows share them; the target selects one of many distributions. Give "
        "rows= without those that JointWrenches.indeterminate lists");
  }

  TaskContext& context_;
  const Element& task_;
  std::string name_;
  bool is_hard_ = false;
  int priority_ = 0, rows_ = 0;
  Argument::Named derived_;
  std::set<std::string> set_;  // fields whose values are already set
};

/// Return the targets of a task that keeps the rigid joints at rest, and add the number of their unknowns to `first`.
Argument::Named targets_of_rigid_joints(const TaskContext& context, const TaskArguments& arguments, int& first) {
  Argument::Named still;
  for (const std::string& name : arguments.rigid) {
    const int nv = context.joint(name).joint.nv;
    if (nv == 0) throw ModelError("rigid: joint '" + name + "' does not move; expected a joint that moves, such as a spring");
    if (std::count(arguments.actuated.begin(), arguments.actuated.end(), name))
      throw ModelError("rigid: joint '" + name + "' has a motor in this controller; expected a passive joint");
    if (find_argument(still, name)) throw ModelError("rigid: joint '" + name + "' is listed twice");
    still.emplace_back(name, Argument::List(static_cast<std::size_t>(nv), 0.0)), first += nv;
  }
  return still;
}

}  // namespace

NamedTaskControl::NamedTaskControl(const ElementModel& model, const TaskArguments& arguments) {
  TaskContext context(model, *this);
  law.solve = &solve_quadratic_programme;
  law.limited = arguments.limits.has_value();
  law.force_arm = arguments.force_arm ? *arguments.force_arm : context.tree.length / 30.0;
  for (const Element& contact : arguments.contacts) law.contact.push_back(ContactReader(context, contact).read());
  group_contacts(context, law.contact, arguments.contacts);

  int motors = 0;
  for (const std::string& name : arguments.actuated) motors += context.joint(name).joint.nv;
  if (motors == 0)
    throw ModelError(
        "TaskControl needs motors, but no joint is actuated: pass their names as actuated=, or mark joints as actuated");
  int first = motors;
  const Argument::Named still = targets_of_rigid_joints(context, arguments, first);
  for (std::size_t k = 0; k < law.contact.size(); ++k) {
    const std::string frame = *find_argument(arguments.contacts[k].arguments, "frame")->get<std::string>();
    context.contact_unknowns.emplace(frame, std::make_pair(first, law.contact[k].rows));
    first += law.contact[k].rows;
  }

  std::vector<Element> tasks = arguments.tasks;
  if (!still.empty())
    tasks.push_back({"PostureTask", {{"targets", still}, {"stiffness", 0.0}, {"damping", 0.0}, {"hard", true}}, "rigid joints"});
  std::vector<TaskReader> readers;
  readers.reserve(tasks.size());
  std::set<int> priorities;
  for (const Element& task : tasks) {
    readers.emplace_back(context, task);
    if (!readers.back().is_hard()) priorities.insert(readers.back().priority());
  }
  law.levels = static_cast<int>(priorities.size());
  for (TaskReader& reader : readers) {
    const int above = static_cast<int>(std::distance(priorities.begin(), priorities.find(reader.priority())));
    levels.push_back(reader.is_hard() ? 0 : 1 + above);
    law.task.push_back(reader.read(levels.back()));
    names.push_back(reader.name()), sizes.push_back(law.task.back().rows());
  }
  std::stable_sort(law.task.begin(), law.task.end(), [](const Task& a, const Task& b) { return a.level < b.level; });
  law.parameters = parameters.width();

  const Numbers weights = real_numbers("effort_weights", arguments.effort_weights);
  const auto n = static_cast<std::size_t>(motors);
  if (!weights.shape.empty() && weights.shape != std::vector<std::size_t>{n})
    throw ShapeError("effort_weights must be a number, or (" + std::to_string(n) + ",) for the motors; got " +
                     shape_text(weights.shape));
  if (!all_of(weights, [](double w) { return std::isfinite(w) && w > 0.0; }))
    refuse("effort_weights", "be positive", arguments.effort_weights);
  LimitReader limit(context, arguments);
  limit.read_motors(weights.shape.empty() ? std::vector<double>(n, weights.numbers[0]) : weights.numbers);
  limit.read_motion();
  for (std::size_t k = 0; k < law.contact.size(); ++k)
    add_cone_names(law.contact[k], *find_argument(arguments.contacts[k].arguments, "frame")->get<std::string>(), limits);
  for (const TaskMotor& motor : law.motor) law.drives_loop_joints |= motor.iv >= context.tree.nv;
  for (const MotionLimit& each : law.motion) law.drives_loop_joints |= each.coordinate.iv >= context.tree.nv;
  const auto note = [&](const auto& member) {
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, std::vector<TaskCoordinate>>)
      for (const TaskCoordinate& each : member) law.drives_loop_joints |= each.iv >= context.tree.nv;
  };
  for (Task& task : law.task)
    std::visit([&](auto& kind) { kind.fields([&](const char*, auto& member) { note(member); }); }, task.kind);
}

}  // namespace sarrus
