// Activations.h: the code that keeps an activation in memory, so that a window may open in the middle of it
// (Resumes.h).
#pragma once

#include "Twins.h"

#include "llvm/IR/IRBuilder.h"

namespace tracekit {

/// Writes what keeps the activations of one function, beside the Emitter's records.
class ActivationKeeper {
public:
  ActivationKeeper(const SegmentedFunction &S, const Regions &Paths, Runtime &R, const Resumes &Keep, Twin *Other)
      : S(S), Paths(Paths), R(R), Keep(Keep), Other(Other), NoSanitize(llvm::MDNode::get(S.F->getContext(), {})) {}

  /// Before anything else is written.
  void begin();
  bool isDoor(unsigned K) const { return Other && Other->isDoor(K); }
  /// Control comes from the clean body before `Position`, where segment `K` begins, too.
  void door(unsigned K, llvm::Instruction *Position);
  bool isWayBack(unsigned K) const { return Other && Other->isWayBack(K); }
  /// Control may go back into the clean body before `Position`, where segment `K` begins.
  void wayBack(unsigned K, llvm::Instruction *Position);
  llvm::Value *activation() const { return Activation; }
  /// Tells the runtime of a call or a return, before `Position`, if it wants to know of the function's.
  void watch(llvm::Instruction *Position, bool Enters);
  /// Behind the check of the entry.
  void entered(llvm::IRBuilder<> &B);
  /// Around what may look at the activation, if it is deferred (Deferral.h): it holds what it does where segment `K`
  /// begins, or, `K` being ~0u, nothing.
  void show(llvm::IRBuilder<> &B, unsigned K);
  void hide(llvm::IRBuilder<> &B);
  /// Where its words are kept meanwhile, by their places in the activation.
  const llvm::MapVector<unsigned, llvm::AllocaInst *> &shadows() const { return Shadows; }
  /// Control came back by unwinding: what it passed over is gone.
  void landed(llvm::IRBuilder<> &B);
  /// The check of a loop's header calls the runtime, which may look at the activation.
  void looks(llvm::IRBuilder<> &B, const llvm::BasicBlock *Header);
  /// Behind the check of a loop's header.
  void iterated(llvm::IRBuilder<> &B, const llvm::BasicBlock *Header);
  /// The loop is in this iteration.
  void iteration(llvm::IRBuilder<> &B, const llvm::BasicBlock *Header, llvm::Value *Number);
  /// An operation has recorded its words.
  void operation(llvm::IRBuilder<> &B, const Operation &Op, llvm::ArrayRef<llvm::Value *> Words);
  /// A record that ends with segment `K` is whole; control goes on at `Next`, null: it may go on anywhere.
  void path(llvm::IRBuilder<> &B, unsigned K, const llvm::BasicBlock *Next = nullptr);

private:
  void keep(llvm::IRBuilder<> &B, llvm::Value *Word, unsigned At);
  void put(llvm::IRBuilder<> &B, llvm::Value *Word, unsigned At);
  llvm::Value *kept(llvm::IRBuilder<> &B, unsigned At);
  llvm::AllocaInst *shadow(unsigned At);
  /// Where the loop's iteration is kept, if it is.
  std::optional<unsigned> loopAt(const llvm::BasicBlock *Header) const;
  void end(llvm::IRBuilder<> &B, const llvm::Value *Address);
  void left(llvm::IRBuilder<> &B);
  llvm::Value *innermost(llvm::IRBuilder<> &B);
  llvm::Value *slot(llvm::IRBuilder<> &B, unsigned At);
  void countQuietly(llvm::BasicBlock *Header);
  /// Marks an instruction as one that other instrumentation leaves alone.
  template <typename InstructionType> InstructionType *ours(InstructionType *I) {
    I->setMetadata(llvm::LLVMContext::MD_nosanitize, NoSanitize);
    return I;
  }

  const SegmentedFunction &S;
  const Regions &Paths;
  Runtime &R;
  const Resumes &Keep;
  Twin *Other; // null: there is no clean body
  llvm::MDNode *NoSanitize;
  llvm::AllocaInst *Activation = nullptr;
  llvm::MapVector<unsigned, llvm::AllocaInst *> Shadows;
  llvm::DenseMap<const llvm::BasicBlock *, llvm::PHINode *> Again;  // by header: is it not the first iteration?
  llvm::DenseMap<const llvm::BasicBlock *, llvm::PHINode *> Counts; // by header: the iteration, from 0
  /// By header of a quiet loop: the iteration, from 0, and the segment with which the one before ended.
  llvm::DenseMap<const llvm::BasicBlock *, std::pair<llvm::PHINode *, llvm::PHINode *>> Quiet;
};

} // namespace tracekit
