// Segments.cpp: see Segments.h.
#include "Segments.h"

#include "Compat.h"

using namespace llvm;

namespace tracekit {

namespace {

class Cutter {
public:
  Cutter(SegmentedFunction &Out, const Classifier &Classify, const DominatorTree &DT, const LoopInfo &LI,
         bool GroundTruth)
      : Out(Out), Classify(Classify), DT(DT), LI(LI), Limit(GroundTruth ? MaxWords / 2 - 1 : MaxWords) {}

  void run() {
    for (BasicBlock &BB : *Out.F)
      if (DT.isReachableFromEntry(&BB))
        cut(BB);
  }

private:
  void cut(BasicBlock &BB);
  void open(Instruction &Begin, Instruction *Continues, uint32_t Flags);
  void close(Instruction &End, bool EndsWithCall);
  void add(const Operation &Op);
  void classify(Instruction &I);
  void openFirst(BasicBlock &BB, Instruction &Begin);
  void flagLast(BasicBlock &BB);

  SegmentedFunction &Out;
  const Classifier &Classify;
  const DominatorTree &DT;
  const LoopInfo &LI;
  const unsigned Limit; // words of a segment; ground truth is at most one more for each
};

void Cutter::add(const Operation &Op) {
  Out.Ops.push_back(Op);
  Out.Segments.back().Ops += 1;
  Out.Segments.back().Words += Op.words();
}

void Cutter::open(Instruction &Begin, Instruction *Continues, uint32_t Flags) {
  Segment S{Begin.getParent(), &Begin};
  S.Continues = Continues;
  S.Flags = Flags | (Continues ? TK_BLOCK_CONTINUES : 0);
  S.FirstOp = Out.Ops.size();
  Out.Segments.push_back(S);
  if (Flags & TK_BLOCK_LANDING) {
    Operation Landing{TK_OP_LANDING};
    Landing.recordInPlace(Out.Frame);
    Landing.Origin = &Begin;
    add(Landing);
  }
  if (Continues) {
    Operations Pointers;
    Classify.pointers(*Continues, nullptr, Pointers);
    for (const Operation &Op : Pointers)
      add(Op);
  }
}

void Cutter::close(Instruction &End, bool EndsWithCall) {
  Out.Segments.back().End = &End;
  Out.Segments.back().EndsWithCall = EndsWithCall;
}

/// Opens a basic block's first segment with what belongs to the way it is reached.
void Cutter::openFirst(BasicBlock &BB, Instruction &Begin) {
  Instruction *Continues = nullptr;
  uint32_t Flags = BB.isLandingPad() ? TK_BLOCK_LANDING : 0;
  if (BasicBlock *Before = BB.getSinglePredecessor())
    if (auto *Invoke = dyn_cast<InvokeInst>(Before->getTerminator()))
      if (mayReenter(*Invoke) && Invoke->getNormalDest() == &BB) {
        Continues = Invoke;
        Flags |= returnsTwice(*Invoke) ? TK_BLOCK_LANDING : 0;
      }
  if (LI.isLoopHeader(&BB)) {
    Flags |= TK_BLOCK_LOOP_HEADER;
    for (PHINode &Phi : BB.phis())
      Out.HeaderPhis[&BB].push_back(&Phi);
  }
  if (BB.isEntryBlock())
    Flags |= TK_BLOCK_ENTRY;
  open(Begin, Continues, Flags);
  if (!BB.isEntryBlock())
    return;
  if (Out.Frame) {
    Operation Frame{TK_OP_FRAME};
    Frame.recordInPlace(Out.Frame);
    add(Frame);
  }
  Operations Objects;
  Classify.entry(Objects);
  for (Instruction &I : BB)
    if (auto *A = dyn_cast<AllocaInst>(&I); A && A->isStaticAlloca() && A != Out.Frame)
      Objects.push_back(Classify.stackAlloc(*A, nullptr, false));
  for (const Operation &Op : Objects) {
    if (Out.Segments.back().Words + Op.words() > Limit) { // what follows is recorded where the block begins, too
      close(Begin, false);
      open(Begin, nullptr, 0);
    }
    add(Op);
  }
}

/// What the end of a basic block says about its last segment.
void Cutter::flagLast(BasicBlock &BB) {
  Segment &Last = Out.Segments.back();
  if (isa<ReturnInst>(BB.getTerminator()))
    Last.Flags |= TK_BLOCK_RETURNS;
  if (Loop *L = LI.getLoopFor(&BB))
    if (is_contained(successors(&BB), L->getHeader()))
      Last.Flags |= TK_BLOCK_LATCH;
}

static bool onlyUnreachable(Instruction *I) {
  while (I && (I->isDebugOrPseudoInst() || isa<PHINode>(I)))
    I = I->getNextNode();
  return isa_and_nonnull<UnreachableInst>(I);
}

/// Adds what an instruction does. The segment is cut before all of it, for what is recorded after the instruction
/// cannot stand in a segment that ends before it; only what is too much for any segment, lanes without values, is
/// divided.
void Cutter::classify(Instruction &I) {
  Operations Ops;
  Classify.classify(I, Ops);
  unsigned Left = 0;
  for (const Operation &Op : Ops)
    Left += Op.words();
  for (const Operation &Op : Ops) {
    if (Out.Segments.back().Words + (Left <= Limit ? Left : Op.words()) > Limit) {
      close(I, false);
      open(I, nullptr, 0);
    }
    Left -= Op.words();
    add(Op);
  }
}

void Cutter::cut(BasicBlock &BB) {
  BasicBlock::iterator First = BB.getFirstInsertionPt();
  while (BB.isEntryBlock() && isa<AllocaInst>(*First) && cast<AllocaInst>(*First).isStaticAlloca())
    ++First;
  if (onlyUnreachable(&*First) && !BB.isEntryBlock())
    return;
  unsigned FirstSegment = Out.Segments.size();
  openFirst(BB, *First);
  for (Instruction &I : make_range(First, BB.end())) {
    classify(I);
    auto *Call = dyn_cast<CallInst>(&I);
    if (mayReenter(I)) {
      bool Tail = Call && Call->isMustTailCall();
      Out.Segments.back().Flags |= Tail ? TK_BLOCK_TAIL_CALL : 0;
      close(I, true);
      if (!Call || Tail || Call->doesNotReturn() || onlyUnreachable(I.getNextNode()))
        break;
      open(*I.getNextNode(), &I, returnsTwice(I) ? TK_BLOCK_LANDING : 0);
    } else if (I.isTerminator()) {
      close(I, false);
    }
  }
  bool RanToTheEnd = !Out.Segments.back().EndsWithCall || Out.Segments.back().End->isTerminator();
  if (RanToTheEnd)
    flagLast(BB);
  Out.OfBlock[&BB] = {FirstSegment, unsigned(Out.Segments.size()) - 1};
}

} // namespace

SegmentedFunction segments(Function &F, AllocaInst *Frame, const Classifier &Operations, const DominatorTree &DT,
                           const LoopInfo &LI, bool GroundTruth) {
  SegmentedFunction Out;
  Out.F = &F;
  Out.Frame = Frame;
  Cutter(Out, Operations, DT, LI, GroundTruth).run();
  return Out;
}

} // namespace tracekit
