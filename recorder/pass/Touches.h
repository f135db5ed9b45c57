// Touches.h: where a function reads and writes the bytes of its variables, and which of them it may read unassigned.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

#include <vector>

namespace tracekit {

/// One access to a variable.
struct Touch {
  uint64_t Begin, End; // bytes; all of it where the offset varies
  bool Varies;         // only some of these bytes
  bool Reads, Writes;
  bool TakesAddress;          // it is given to a call there
  const llvm::DILocation *At; // null if it is not known
};

/// Whether an instruction takes the address of a variable of which each thread has its own (isPerThread of
/// ThreadPrivate.h), in C++ perhaps by the function that initialises it first.
bool isOfThread(const llvm::Instruction &I);

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
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<unsigned, 4>> In; // the places in `Of` of what it touches
  llvm::DenseMap<const llvm::BasicBlock *, StoredTypes> StoresElsewhere;       // through pointers
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<llvm::Function *, 2>> Calls;
  llvm::SmallPtrSet<const llvm::BasicBlock *, 16> CallsSomething, CallsUnknown; // anything; through a pointer

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

/// The blocks of a region with their edges, as numbers: many variables are looked at in one region.
class Region {
public:
  /// `Blocks` in reverse post-order, the first of them entered from outside; `Ends`, of them, are those that end a
  /// pass.
  Region(llvm::ArrayRef<llvm::BasicBlock *> Blocks, llvm::ArrayRef<llvm::BasicBlock *> Ends);

  unsigned size() const { return First.size() - 1; }
  /// The blocks of the region from which edges lead to a block.
  llvm::ArrayRef<unsigned> before(unsigned Block) const {
    return llvm::ArrayRef(Before).slice(First[Block], First[Block + 1] - First[Block]);
  }
  /// A block's number; null if the region does not hold it.
  const unsigned *find(const llvm::BasicBlock *BB) const {
    auto Known = Numbers.find(BB);
    return Known == Numbers.end() ? nullptr : &Known->second;
  }

  llvm::SmallVector<unsigned, 4> Ends;

private:
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> Numbers;
  std::vector<unsigned> First, Before; // where a block's predecessors begin; they
};

RegionEffect effectOf(const ObjectTouches &Variable, const Region &In);

} // namespace tracekit
