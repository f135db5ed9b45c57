// Touches.h: where a function reads and writes the bytes of its variables, and which of them it may read unassigned.
#pragma once

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

namespace tracekit {

/// One access to a variable.
struct Touch {
  uint64_t Begin, End; // bytes; all of it where the offset varies
  bool Varies;         // only some of these bytes
  bool Reads, Writes;
  bool TakesAddress;          // it is given to a call there
  const llvm::DILocation *At; // null if it is not known
};

/// A local variable or a global one.
using Object = llvm::Value *;

/// The accesses to one variable in the text of one function.
struct ObjectTouches {
  uint64_t Size = 0;
  bool MayBeReached = false; // through a pointer that later passes may turn into the variable itself
  bool MayBeStored = false;  // through one that is there when a call is over: not only read
  bool IsKept = false;       // its address may be found again elsewhere, when a call that was given it is over
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<Touch, 4>> In;
};

/// The types of what is stored; null stands for any.
using StoredTypes = llvm::SmallPtrSet<llvm::Type *, 2>;

/// Whether stores of these types through pointers may change a variable, as C and C++ have it.
bool mayChange(Object Variable, const StoredTypes &Types);

/// The accesses of one function.
class Touches {
public:
  explicit Touches(llvm::Function &F);

  llvm::MapVector<Object, ObjectTouches> Of;
  llvm::DenseMap<const llvm::BasicBlock *, StoredTypes> StoresElsewhere; // through pointers
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<llvm::Function *, 2>> Calls;
  llvm::SmallPtrSet<const llvm::BasicBlock *, 16> CallsSomething, CallsUnknown; // anything; through a pointer

  /// Whether a block may store into a variable through a pointer, or call through a pointer what does.
  bool mayReach(Object Variable, const llvm::BasicBlock *BB) const;

private:
  void look(llvm::Instruction &I);
  void lookAtCall(llvm::CallBase &Call);
  void access(llvm::Instruction &I, llvm::Value *Pointer, uint64_t Size, bool Reads, bool Writes, llvm::Type *As);
  void escape(llvm::Value *Pointer, bool MayBeStored = true);

  const llvm::DataLayout &DL;
};

/// What one pass over a region, a loop's iteration or a whole function, does to a variable.
struct RegionEffect {
  bool Writes = false, Varies = false, TakesAddress = false;
  bool ReadsFirst = false;   // may read a byte that this pass has not written
  bool WritesAlways = false; // each pass that reaches its end has written all of it
};

/// `Blocks` in reverse post-order, the first of them entered from outside; `Ends` are those that end a pass.
RegionEffect effectOf(const ObjectTouches &Variable, llvm::ArrayRef<llvm::BasicBlock *> Blocks,
                      llvm::ArrayRef<llvm::BasicBlock *> Ends);

} // namespace tracekit
