// Operations.h: what an instruction does to memory, as rows of the table `ops` and as words to record.
#pragma once

#include "Unit.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

namespace tracekit {

/// How the lanes of a masked vector access lie in memory.
enum class LaneLayout {
  Whole,     // not a masked access
  Strided,   // lane k at address + k * size (masked load and store)
  Scattered, // lane k at element k of a vector of addresses (gather, scatter)
  Packed,    // the enabled lanes one after another (expandload, compressstore)
};

/// A part of an address that grows by `Stride` (plus a register, if that is not TK_NONE) with each iteration of `L`.
struct Term {
  const llvm::Loop *L;
  int64_t Stride;
  Row StrideRegister;
};

/// The value of what is wider is not recorded.
constexpr uint64_t MaxValueBytes = 64;

/// What the user asked for besides addresses.
struct Extras {
  bool Loads = false, Stores = false; // the values that they move
  bool Pointers = false;              // where pointers come from
};

/// One operation. It records its base if `BaseKind` is TK_BASE_RECORDED, then its size if that is dynamic, then its
/// value.
///
/// Its address is base + Offset + the sum of Terms (formats/SPEC.md, "Operations").
///
/// A masked access becomes one operation per lane; the size of a lane that the mask disables is recorded
/// as 0, and readers skip accesses of no bytes.
struct Operation {
  uint8_t Kind;
  uint8_t Flags = 0;
  uint8_t TypeClass = TK_TYPE_UNKNOWN;
  LaneLayout Layout = LaneLayout::Whole;
  unsigned Lane = 0;
  bool Scalable = false;          // `Size` is to be multiplied by vscale
  bool After = false;             // record after `At`, not before it
  uint64_t Size = 0;              // bytes
  unsigned ValueWords = 0;        // of the value that it moves; 0: it is not recorded
  llvm::Value *Address = nullptr; // null: the operation has none
  llvm::Value *Base = nullptr;    // the word of TK_BASE_RECORDED
  uint8_t BaseKind = TK_BASE_NO_ADDRESS;
  Row BaseRow = TK_NONE; // register or row of globals
  Row Defines = TK_NONE; // the register that keeps the word
  int64_t Offset = 0;
  llvm::SmallVector<Term, 1> Terms;
  llvm::Value *Bytes = nullptr;        // the dynamic size; null: `Size`
  llvm::Value *Mask = nullptr;         // of a lane of a masked access
  llvm::Instruction *Origin = nullptr; // the instruction it describes; null at a function's start
  llvm::Instruction *At = nullptr;     // where to record; null: where the block begins

  void recordInPlace(llvm::Value *Word) {
    Address = Base = Word;
    BaseKind = TK_BASE_RECORDED;
  }
  unsigned words() const {
    return (BaseKind == TK_BASE_RECORDED) + ((Flags & TK_OPFLAG_DYNAMIC_SIZE) != 0) + ValueWords +
           ((Flags & TK_OPFLAG_GROUND_TRUTH) != 0);
  }
};

using Operations = llvm::SmallVector<Operation, 4>;

/// The operations of one function's instructions.
class Classifier {
public:
  Classifier(llvm::Function &F, const llvm::TargetLibraryInfo &TLI, const llvm::DominatorTree &DT, Extras Asked);

  /// Appends what `I` does, in order; a CALL comes last. Pointers that come out of a CALL are left for pointers().
  void classify(llvm::Instruction &I, Operations &Out) const;

  /// The stack object that begins with `A`, recorded at `At` (null: where the block begins).
  Operation stackAlloc(llvm::AllocaInst &A, llvm::Instruction *At, bool After) const;

  /// Appends the pointers that come from `I`, recorded after `At` (null: where the block begins).
  void pointers(llvm::Instruction &I, llvm::Instruction *At, Operations &Out) const;

  /// What is recorded when the function is entered: byval arguments, which are objects of the frame.
  void entry(Operations &Out) const;

private:
  void access(uint8_t Kind, llvm::Instruction &I, llvm::Value *Address, llvm::Type *T, uint8_t Flags,
              Operations &Out) const;
  void recordValue(Operation &Op, llvm::Type *T) const;
  void bulk(uint8_t Kind, llvm::Instruction &I, llvm::Value *Address, llvm::Value *Length, uint8_t Flags,
            Operations &Out) const;
  void copy(llvm::Instruction &I, llvm::Value *To, llvm::Value *From, llvm::Value *Length, uint8_t Flags,
            Operations &Out) const;
  void lanes(llvm::IntrinsicInst &I, uint8_t Kind, LaneLayout Layout, llvm::Value *Address, llvm::Value *Mask,
             llvm::Type *T, Operations &Out) const;
  bool masked(llvm::IntrinsicInst &I, Operations &Out) const;
  void intrinsic(llvm::IntrinsicInst &I, Operations &Out) const;
  void stackFree(llvm::AllocaInst &A, llvm::Instruction &At, Operations &Out) const;
  void stackRestore(llvm::IntrinsicInst &I, Operations &Out) const;
  void call(llvm::CallBase &Call, Operations &Out) const;
  void libraryCopy(llvm::CallBase &Call, Operations &Out) const;

  llvm::Function &F;
  const llvm::DataLayout &DL;
  const llvm::TargetLibraryInfo &TLI;
  const llvm::DominatorTree &DT;
  const Extras Asked;
  llvm::SmallVector<llvm::AllocaInst *, 4> DynamicAllocas;
};

/// Whether control may enter instrumented code during `I`: it is a call, and neither of an intrinsic or a leaf
/// (Leaves.h) nor inline assembly.
bool mayReenter(const llvm::Instruction &I);

/// Whether `I` is a call that may return a second time (setjmp, vfork).
bool returnsTwice(const llvm::Instruction &I);

/// Whether `I` is a call of the C library's setjmp, under one of its names: it returns 0, and later other numbers.
bool isSetjmp(const llvm::Instruction &I);

/// Whether `F` makes a call that may return a second time. (Function::callsFunctionThatReturnsTwice() does not count
/// __builtin_setjmp.)
bool callsReturnTwice(const llvm::Function &F);

/// Whether memory may be touched by this inline assembly or intrinsic in ways that no other operation shows.
bool touchesUnseenMemory(const llvm::CallBase &Call);

/// Words of an operation, computed at the builder's position: base, dynamic size, value, ground truth, as far as it has
/// them.
llvm::SmallVector<llvm::Value *, 4> recordedWords(const Operation &Op, llvm::IRBuilder<> &B);

/// The first of them, of an operation that records its base.
llvm::Value *baseWord(const Operation &Op, llvm::IRBuilder<> &B);

/// Appends the words of the value that `Op` moves, if it is recorded.
void appendValue(const Operation &Op, llvm::IRBuilder<> &B, llvm::SmallVectorImpl<llvm::Value *> &Words);

} // namespace tracekit
