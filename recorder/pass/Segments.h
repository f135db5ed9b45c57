// Segments.h: cuts a function's basic blocks into the image's blocks (segments between calls).
#pragma once

#include "Operations.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"

#include <vector>

namespace tracekit {

/// What would record more words is cut, so that the check at its start can promise room (TK_SLACK) for its record.
constexpr unsigned MaxWords = 500;

/// A block as the image knows it: the instructions from Begin on, published just before End.
struct Segment {
  llvm::BasicBlock *Parent;
  llvm::Instruction *Begin;
  llvm::Instruction *End = nullptr;       // its call, its terminator, or the first instruction of the next segment
  llvm::Instruction *Continues = nullptr; // the call that it follows
  bool EndsWithCall = false;
  uint32_t Flags = 0;   // TK_BLOCK_*
  unsigned FirstOp = 0; // in SegmentedFunction::Ops
  unsigned Ops = 0;
  unsigned Words = 0;
};

struct SegmentedFunction {
  llvm::Function *F = nullptr;
  llvm::AllocaInst *Frame = nullptr; // names the activation, where control may land in it; else null
  std::vector<Segment> Segments;
  std::vector<Operation> Ops;
  unsigned Registers = 0; // that an activation has
  /// The program's own phis at loop headers: scalar evolution's code and ours add others later.
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<llvm::PHINode *, 4>> HeaderPhis;
  /// First and last segment of a basic block; basic blocks that cannot run have none.
  llvm::DenseMap<const llvm::BasicBlock *, std::pair<unsigned, unsigned>> OfBlock;
};

/// Brings `F` into the form that segments() expects: scalar locals in registers, static allocas first, and
/// each invoke's normal destination reached from nowhere else. Adds the private stack slot that names activations
/// of a function in which control may land, and returns it (else null).
llvm::AllocaInst *prepare(llvm::Function &F);

/// Gives each loop, where it can be, a block through which alone it is entered: for what is recorded once before it.
void givePreheaders(llvm::DominatorTree &DT, llvm::LoopInfo &LI);

/// Computes once, where ways through an iteration meet, what all of them compute alike for the next iteration.
void joinMerges(const llvm::DominatorTree &DT, const llvm::LoopInfo &LI);

/// Loads at the beginning of each iteration what loops hand on in a register of no variable, although it is what lies
/// in memory.
void loadAgain(const llvm::LoopInfo &LI, llvm::AAResults &AA);

/// `Frame` is what prepare() returned. With `GroundTruth` there is room for ground-truth words in each segment.
SegmentedFunction segments(llvm::Function &F, llvm::AllocaInst *Frame, const Classifier &Operations,
                           const llvm::DominatorTree &DT, const llvm::LoopInfo &LI, bool GroundTruth);

/// Makes each block record its number, and each operation its address in place, whatever else they record.
void addGroundTruth(SegmentedFunction &S);

/// Fills in how many words each segment records: at most MaxWords, or compilation ends with an error.
void countWords(SegmentedFunction &S);

} // namespace tracekit
