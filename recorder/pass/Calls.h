// Calls.h: rows of `calls`: what is known of a call site.
#pragma once

#include "Unit.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstrTypes.h"

namespace tracekit {

class CallSites {
public:
  explicit CallSites(Unit &U) : U(U) {}

  /// Appends the row of `Call`, whose operation and block are the given rows.
  Row add(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI, Row Op, Row Block);

  /// The text of a function type, by which indirect calls are matched with functions.
  uint32_t signature(llvm::FunctionType *Type);

private:
  /// Appends, once, the row of a function that is not defined here and has another name in its language.
  void declare(const llvm::Function &Callee);

  Unit &U;
  llvm::DenseMap<llvm::FunctionType *, uint32_t> Signatures;
  llvm::SmallPtrSet<const llvm::Function *, 16> Declared;
};

} // namespace tracekit
