#include "tools/lab/partition/integer_program.h"

#include <Cbc_C_Interface.h>
#include <fmt/format.h>

#include <chrono>
#include <future>

namespace tierd {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);

Error gave_up(const char* why) {
  return {Code::internal, "CBC", why};
}

}  // namespace

void IntegerProgram::Delete::operator()(void* model) const {
  Cbc_deleteModel(model);
}

IntegerProgram::IntegerProgram() : model_(Cbc_newModel()) {
  Cbc_setObjSense(model_.get(), 1);
}

int IntegerProgram::column(double cost, double most, bool whole) {
  const int number = Cbc_getNumCols(model_.get());
  Cbc_addCol(model_.get(), fmt::format("c{}", number).c_str(), 0, most, cost, whole ? 1 : 0, 0, nullptr,
             nullptr);
  return number;
}
int IntegerProgram::number(double cost, double most) {
  return column(cost, most, false);
}
int IntegerProgram::whole_number(double cost, double most) {
  return column(cost, most, true);
}

void IntegerProgram::require(const std::vector<Term>& sum, Is is, double bound) {
  std::vector<int> columns;
  std::vector<double> factors;
  for (const Term& term : sum) {
    columns.push_back(term.column);
    factors.push_back(term.factor);
  }
  const int number = Cbc_getNumRows(model_.get());
  Cbc_addRow(model_.get(), fmt::format("r{}", number).c_str(), static_cast<int>(columns.size()),
             columns.data(), factors.data(), static_cast<char>(is), bound);
}

void IntegerProgram::begin_with(const std::vector<Term>& values) {
  std::vector<int> columns;
  std::vector<double> factors;
  for (const Term& term : values) {
    columns.push_back(term.column);
    factors.push_back(term.factor);
  }
  Cbc_setMIPStartI(model_.get(), static_cast<int>(columns.size()), columns.data(), factors.data());
}

Result<IntegerProgram::Solution> IntegerProgram::solve(double gap, const SolverLimit& limit,
                                                       const std::function<void()>& waiting) {
  Cbc_Model* const model = model_.get();
  Cbc_setLogLevel(model, 0);
  Cbc_setParameter(model, "ratioGap", fmt::format("{}", gap).c_str());
  // By default CBC ignores improvements below 1e-5, and then reports the rest as infeasible.
  Cbc_setParameter(model, "increment", "1e-9");
  if (limit.nodes) {
    Cbc_setParameter(model, "maxNodes", fmt::format("{}", *limit.nodes).c_str());
  } else {
    Cbc_setParameter(model, "timeMode", "elapsed");
    Cbc_setParameter(model, "seconds", fmt::format("{}", limit.seconds).c_str());
  }
  auto solved = std::async(std::launch::async, [model] { Cbc_solve(model); });
  while (solved.wait_for(kLook) != std::future_status::ready) waiting();
  try {
    solved.get();
  } catch (...) {  // its exceptions have no common base
    return gave_up("threw an exception while it solved");
  }
  if (Cbc_isAbandoned(model) != 0) return gave_up("ran into numerical difficulties");
  Solution solution;
  solution.impossible = Cbc_isProvenInfeasible(model) != 0;
  if (solution.impossible) return solution;
  solution.bound = Cbc_getBestPossibleObjValue(model);
  const double* const values = Cbc_bestSolution(model);
  if (values != nullptr) solution.values.assign(values, values + Cbc_getNumCols(model));
  return solution;
}

}  // namespace tierd
