// GroundTruth.cpp: what --record=both records beside: each block its number, each operation its address in place.
#include "Segments.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace tracekit {

static bool hasGroundTruth(const Operation &Op) {
  return Op.Address && (Op.Kind <= TK_OP_SET || Op.Kind == TK_OP_STACK_ALLOC || Op.Kind == TK_OP_STACK_FREE ||
                        Op.Kind == TK_OP_POINTER);
}

void addGroundTruth(SegmentedFunction &S) {
  std::vector<Operation> All;
  for (unsigned Number = 0; Number < S.Segments.size(); ++Number) {
    Segment &Seg = S.Segments[Number];
    unsigned First = All.size();
    Operation Block{TK_OP_GROUND_TRUTH};
    Block.recordInPlace(ConstantInt::get(Type::getInt64Ty(S.F->getContext()), Number));
    auto Begin = S.Ops.begin() + Seg.FirstOp, End = Begin + Seg.Ops;
    auto Rest = Begin != End && Begin->Kind == TK_OP_LANDING ? Begin + 1 : Begin; // landings stand first
    All.insert(All.end(), Begin, Rest);
    All.push_back(Block);
    All.insert(All.end(), Rest, End);
    for (unsigned K = First; K < All.size(); ++K)
      if (hasGroundTruth(All[K]))
        All[K].Flags |= TK_OPFLAG_GROUND_TRUTH;
    Seg.FirstOp = First;
    Seg.Ops = All.size() - First;
  }
  S.Ops = std::move(All);
}

void countWords(SegmentedFunction &S) {
  for (Segment &Seg : S.Segments) {
    Seg.Words = 0;
    for (unsigned K = Seg.FirstOp; K < Seg.FirstOp + Seg.Ops; ++K)
      Seg.Words += S.Ops[K].words();
    // A region of several segments is cut where it has more (Regions::measure); one segment cannot be.
    if (Seg.Words > MaxWords)
      report_fatal_error("tracekit: a block of " + Twine(S.F->getName()) +
                         " records more than the runtime has room for");
  }
}

} // namespace tracekit
