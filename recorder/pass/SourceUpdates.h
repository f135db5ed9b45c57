// SourceUpdates.h: variables that a loop of the source accumulates in, or advances by a constant, and nothing else.
//
// Where nobody looks at the result in the program as it is compiled, the optimiser leaves nothing of it, and merges
// what advances with the counter. The iterations of the source still share the variable.
#pragma once

#include "Accumulation.h"

#include <memory>
#include <optional>
#include <string>

namespace tracekit {

/// What each iteration does to a variable that it reads before it assigns it.
struct SourceUpdate {
  uint32_t Kind; // TK_PHI_REDUCTION or TK_PHI_INDUCTION
  std::string Operator;
  llvm::SmallVector<const llvm::DILocation *, 4> Places = {}; // of a reduction: Accumulation::places()
};

/// What is added to something, if that is a constant: "+3", "-1", "+8 bytes"; "" if `Sum` is no such sum.
std::string constantStep(const llvm::Value &Sum);

/// Answers for the loops of one function, where nothing has been optimised and all variables lie in memory.
class SourceUpdates {
public:
  SourceUpdates(llvm::Function &F, llvm::LoopInfo &LI, llvm::DominatorTree &DT, const llvm::TargetLibraryInfo &TLI)
      : F(F), LI(LI), DT(DT), TLI(TLI) {}

  /// Nothing if it is not known that `L` does nothing else to the variable, a local or global one whose address no
  /// pointer has.
  std::optional<SourceUpdate> of(llvm::Value *Variable, const llvm::Loop &L);

  /// The same of the number that a reference of C++ or a dummy argument of Fortran stands for, as far as the loop's own
  /// text accesses it by that name; a reduction only.
  std::optional<SourceUpdate> of(const llvm::DILocalVariable &Reference, const llvm::Loop &L);

private:
  struct Analyses;
  const FunctionShape &shape();

  llvm::Function &F;
  llvm::LoopInfo &LI;
  llvm::DominatorTree &DT;
  const llvm::TargetLibraryInfo &TLI;
  std::shared_ptr<Analyses> Made; // when first asked for
};

} // namespace tracekit
