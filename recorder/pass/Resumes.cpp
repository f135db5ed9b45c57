// Resumes.cpp: see Resumes.h.
#include "Resumes.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace tracekit {

Resumes describeResumes(const SegmentedFunction &S, const Regions &Paths, const FunctionRows &Rows, const LoopInfo &LI,
                        Unit &U) {
  Resumes Out;
  tk_row_functions &Self = U.Functions[Rows.Function];
  Out.FirstPath = Paths.Paths.size();
  Out.Registers = S.Registers;
  for (const Loop *L : LI.getLoopsInPreorder()) {
    Out.LoopOf[L->getHeader()] = Rows.LoopOf.lookup(L) - Self.first_loop;
    for (const BasicBlock *Before : predecessors(L->getHeader()))
      if (L->contains(Before))
        Out.Latches[L->getHeader()].insert(Before);
  }
  for (const Operation &Op : S.Ops) {
    if (Op.Kind == TK_OP_STACK_ALLOC)
      Out.ObjectOf[&Op] = Out.Objects++;
    for (const Term &T : Op.Terms)
      Out.Counted.insert(T.L->getHeader());
  }
  for (size_t K = 0; K < S.Segments.size(); ++K) {
    tk_row_blocks Block = U.Blocks[Rows.FirstBlock + K];
    Block.ops = 0;
    Block.flags = TK_BLOCK_ENTRY | TK_BLOCK_LANDING;
    Block.continues = TK_NONE;
    U.Paths.push_back({uint32_t(U.PathBlocks.size()), 1, 0, 0});
    U.PathBlocks.push_back({uint32_t(U.Blocks.size())});
    U.Blocks.push_back(Block);
  }
  Self.blocks += S.Segments.size();
  Self.paths += S.Segments.size();
  return Out;
}

PHINode *countIterations(const Resumes &Keep, BasicBlock *Header) {
  IRBuilder<> B(Header, Header->begin());
  B.SetCurrentDebugLocation(DebugLoc());
  PHINode *Count = B.CreatePHI(B.getInt64Ty(), pred_size(Header), "tk.count");
  B.SetInsertPoint(Header, Header->getFirstInsertionPt());
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Next = B.CreateAdd(Count, B.getInt64(1));
  for (BasicBlock *Before : predecessors(Header))
    Count->addIncoming(Keep.isInside(Header, Before) ? Next : B.getInt64(0), Before);
  return Count;
}

} // namespace tracekit
