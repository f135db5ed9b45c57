// ModuleTouches.h: which variables the functions of a module touch, by themselves and through what they call.
#pragma once

#include "Touches.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace tracekit {

/// The global variables that calls touch, and what calls store through pointers.
struct CalleeEffect {
  llvm::SmallPtrSet<const llvm::GlobalVariable *, 8> Touched, Written, ReadFirst, Varying; // parts that vary
  StoredTypes StoresElsewhere; // null, too, if something is called through a pointer
};

/// The functions of a module, where nothing has been optimised.
class ModuleTouches {
public:
  explicit ModuleTouches(llvm::Module &M);

  const Touches &of(llvm::Function &F) const { return *Own.find(&F)->second; }

  /// Whether some function may read the variable before it writes it, so that what a loop leaves there counts. For
  /// variables that other files see, nobody knows.
  bool isReadSomewhere(const llvm::GlobalVariable &G) const {
    return !G.hasLocalLinkage() || ReadFirst.contains(&G) || Reached.contains(&G);
  }

  /// What calls of functions of the module touch, in them and in what they call.
  CalleeEffect effectOfCalls(llvm::ArrayRef<llvm::Function *> Callees) const;

private:
  /// What all blocks of a function call, and store through pointers, as in CalleeEffect.
  struct Summary {
    llvm::SmallVector<llvm::Function *, 0> Calls;
    StoredTypes StoresElsewhere;
  };

  static void summarize(Summary &To, const Touches &Of);
  void enter(llvm::Function &F, llvm::GlobalVariable &G, const ObjectTouches &In, RegionEffect E);

  llvm::DenseMap<llvm::Function *, std::unique_ptr<Touches>> Own;
  llvm::DenseMap<llvm::Function *, Summary> Summaries;
  llvm::DenseMap<const llvm::Function *, llvm::SmallVector<std::pair<const llvm::GlobalVariable *, RegionEffect>, 4>>
      Globals;
  llvm::SmallPtrSet<const llvm::GlobalVariable *, 16> ReadFirst, Reached;
};

} // namespace tracekit
