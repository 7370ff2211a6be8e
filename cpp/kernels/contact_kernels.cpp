// Kernels of rigid contact, at the instruction set level for which this file is compiled.
#include "../contact/response.hpp"
#include "kernels.hpp"
#include "shared.hpp"

namespace sarrus {
namespace {

ConeSolution solve(const ConeProblem& problem, double* p, double* least) {
  SolverLimit limit;
  return solve_cones(problem, thread_arena(), p, least, limit);
}

double respond(const Tree& tree, const StateContacts& contacts, double time, const double* q, const double* v, const double* tau,
               ContactAnswer& answer) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  return contact_response(tree, arena, contacts, time, q, v, tau, answer);
}

}  // namespace

void add_contact_kernels(KernelTable& table) { table.contact = {solve, respond}; }

}  // namespace sarrus
