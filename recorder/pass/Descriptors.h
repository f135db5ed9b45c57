// Descriptors.h: what an instrumented object file says of itself to the runtime (sections tk_functions, tk_globals).
#pragma once

#include "Structures.h"

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace tracekit {

/// Whether the linker's plugin optimises the module again, where this pass is not loaded.
bool isOptimisedAtLink(const llvm::Module &M);

class Descriptors {
public:
  Descriptors(llvm::Module &M, Unit &U, SourceMap &Sources, TypeRows &Types);

  /// Makes the bytes whose addresses are the ids of the `Paths` paths of `F`, row `Index`, and their descriptor.
  llvm::GlobalVariable *addFunction(llvm::Function &F, Row Index, unsigned Paths);

  /// What the runtime has to know of the activations that `F` keeps in memory (runtime/state.h, struct
  /// tk_activation_layout).
  llvm::GlobalVariable *addLayout(llvm::Function &F, llvm::GlobalVariable *Ids, llvm::ArrayRef<uint32_t> Counts,
                                  llvm::ArrayRef<uint32_t> Numbers, llvm::GlobalVariable *Armed);

  /// The byte by which the runtime tells `F` which of its bodies to run.
  llvm::GlobalVariable *addArmed(llvm::Function &F);

  /// Describes every defined global variable that has a name of its own.
  void addGlobals();

  /// Rows of the variables of which the image is sure to hold this definition, and to tell the address.
  llvm::DenseMap<const llvm::Value *, Row> GlobalRows;

  /// Puts the finished unit into the module. Nothing can be added afterwards.
  void finish();

private:
  void addGlobal(llvm::GlobalVariable &G);
  llvm::GlobalVariable *place(llvm::Constant *Initial, llvm::StringRef Section, llvm::GlobalObject &With);

  llvm::Module &M;
  Unit &U;
  SourceMap &Sources;
  TypeRows &Types;
  llvm::GlobalVariable *UnitPlaceholder; // stands for the unit's blob until its size is known
  llvm::SmallVector<llvm::GlobalValue *, 64> Kept;
};

/// Deletes the rows of functions that the optimiser has deleted after they were instrumented (a call that hung on
/// __builtin_constant_p, say). Nothing may delete functions behind it.
class RowsOfTheDead : public llvm::PassInfoMixin<RowsOfTheDead> {
public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);
};

} // namespace tracekit
