// Emit.cpp: see Emit.h.
#include "Emit.h"

#include "Activations.h"
#include "Twins.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace tracekit {

namespace {

/// Segments of a function at most that is not huge.
static constexpr size_t MostSegments = 4096;

/// Writes one function's instrumentation.
///
/// What a region needs lives in registers: where its record begins, the number of the path so far, where the next
/// word goes. Where basic blocks meet they are phis. The position is also stored whenever a record is finished, for
/// calls and signal handlers.
class Emitter {
public:
  Emitter(const SegmentedFunction &S, const Regions &Paths, Runtime &R, GlobalVariable *Ids, ActivationKeeper *Keep)
      : S(S), Paths(Paths), R(R), Ids(Ids), Keep(Keep), C(S.F->getContext()), NoSanitize(MDNode::get(C, {})),
        Unlikely(MDBuilder(C).createBranchWeights(1, 1u << 20)), Unoptimised(S.F->hasOptNone()),
        IsHuge(!Unoptimised && S.Segments.size() > MostSegments), Merges(S.Segments.size()) {
    if (DISubprogram *Function = S.F->getSubprogram())
      NoLine = DILocation::get(C, 0, 0, Function);
  }

  void run() {
    if (Unoptimised) {
      BasicBlock &Entry = S.F->getEntryBlock();
      IRBuilder<> B(&Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
      B.SetCurrentDebugLocation(DebugLoc());
      EntryState = B.CreateThreadLocalAddress(R.State);
    }
    if (Keep)
      Keep->begin();
    std::vector<BasicBlock *> Blocks = blocksInOrder();
    for (BasicBlock *BB : Blocks)
      makeMerge(BB, S.OfBlock.lookup(BB).first);
    for (BasicBlock *BB : Blocks) {
      auto [First, Last] = S.OfBlock.lookup(BB);
      for (unsigned K = First; K <= Last; ++K)
        segment(K);
    }
    if (!Paths.GroundTruth)
      for (unsigned Number = 0; Number < Paths.Runs.size(); ++Number)
        leaveRun(Number);
    for (unsigned K = 0; K < Merges.size(); ++K)
      completeMerge(K);
  }

private:
  /// Where a region stands.
  struct Place {
    Value *Record = nullptr; // where its id will go
    Value *Number = nullptr; // of the path so far
    Value *From = nullptr;   // the next word goes so many words behind
    uint64_t Words = 0;
  };
  struct Merge {
    PHINode *Record = nullptr, *Number = nullptr, *Next = nullptr;
  };

  std::vector<BasicBlock *> blocksInOrder() const;
  void makeMerge(BasicBlock *BB, unsigned First);
  void completeMerge(unsigned K);
  void segment(unsigned K);
  void begin(unsigned K);
  void write(const Operation &Op, Instruction *Begin);
  void publish(IRBuilder<> &B, Value *Next, unsigned K, const BasicBlock *Target = nullptr);
  void leave(unsigned K);
  unsigned groundTruthRunLeft(const BasicBlock *From, const BasicBlock *To) const;
  void arrive(unsigned First, BasicBlock *From, Value *Position, Value *Number);
  Value *numberAt(unsigned K, unsigned First, IRBuilder<> &B);
  void leaveRun(unsigned Number);
  Value *writeRun(unsigned Number, Instruction *Position, Value *Known);
  BasicBlock *splitEdges(Instruction *Terminator, BasicBlock *Next);
  void checkForRoom(Instruction *Begin, Value *Known, unsigned K);

  /// The position is kept in memory only: in unoptimised code, and where control comes from outside.
  bool isReloaded(unsigned K) const { return Unoptimised || Paths.isEntered(K) || (Keep && Keep->isDoor(K)); }

  /// Inserts before `Position`, without a source line.
  struct Builder : IRBuilder<> {
    explicit Builder(Instruction *Position) : IRBuilder<>(Position) { SetCurrentDebugLocation(DebugLoc()); }
  };
  /// Marks an instruction as one that other instrumentation leaves alone.
  template <typename InstructionType> InstructionType *ours(InstructionType *I) {
    I->setMetadata(LLVMContext::MD_nosanitize, NoSanitize);
    return I;
  }
  CallInst *call(IRBuilder<> &B, FunctionCallee Callee, ArrayRef<Value *> Arguments) {
    CallInst *Call = B.CreateCall(Callee, Arguments);
    Call->setCallingConv(cast<Function>(Callee.getCallee())->getCallingConv());
    Call->setDebugLoc(NoLine); // calls between functions that have debug information must have a location
    return ours(Call);
  }
  Value *slot(IRBuilder<> &B, Value *From, uint64_t Words) {
    return Words ? B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), From, Words) : From;
  }
  Value *next(IRBuilder<> &B) { return slot(B, Here.From, Here.Words); }
  /// The same pointer; LLVM does not know that, nor that it is the same each time.
  Value *opaque(IRBuilder<> &B, Value *Pointer) {
    FunctionType *Type = FunctionType::get(Pointer->getType(), {Pointer->getType()}, false);
    return ours(B.CreateCall(InlineAsm::get(Type, "", "=r,0", /*hasSideEffects=*/true), {Pointer}));
  }
  Value *state(IRBuilder<> &B) {
    if (Unoptimised)
      return EntryState;
    return IsHuge ? static_cast<Value *>(R.State) : B.CreateThreadLocalAddress(R.State);
  }

  const SegmentedFunction &S;
  const Regions &Paths;
  Runtime &R;
  GlobalVariable *Ids;
  ActivationKeeper *Keep; // null: no window ever opens
  LLVMContext &C;
  MDNode *NoSanitize;
  MDNode *Unlikely;
  DebugLoc NoLine;
  // At -O0 each value that lives across basic blocks takes a stack slot of its own: two for each segment would
  // make frames several times larger, and recursive programs overflow the stack.
  const bool Unoptimised;
  // Addresses that are the same in all iterations move in front of a loop, one value for each place that has it. In a
  // loop of thousands of blocks (a scanner, an interpreter) allocating registers for thousands of such values takes
  // minutes: addresses are constants or opaque there, which do not move.
  const bool IsHuge;
  Value *EntryState = nullptr;
  DenseMap<const BasicBlock *, Value *> BeforeRun; // by header: the position where it is entered
  std::vector<Merge> Merges;                       // by segment: the phis with which a basic block begins
  Place Here;                                      // of the segment at work
};

std::vector<BasicBlock *> Emitter::blocksInOrder() const {
  std::vector<BasicBlock *> Blocks;
  for (BasicBlock &BB : *S.F)
    if (S.OfBlock.count(&BB))
      Blocks.push_back(&BB);
  return Blocks;
}

/// A basic block that control reaches inside a region goes on with what its predecessors have; one that begins a
/// region needs the position only.
void Emitter::makeMerge(BasicBlock *BB, unsigned First) {
  if (isReloaded(First) || Paths.isInRun(First))
    return;
  IRBuilder<> B(BB, BB->begin());
  B.SetCurrentDebugLocation(DebugLoc());
  unsigned Edges = pred_size(BB);
  Merge &M = Merges[First];
  M.Next = B.CreatePHI(B.getPtrTy(), Edges, "tk.pos");
  if (Paths.starts(First))
    return;
  M.Record = B.CreatePHI(B.getPtrTy(), Edges, "tk.record");
  M.Number = B.CreatePHI(B.getInt64Ty(), Edges, "tk.path");
}

/// Nothing comes from blocks that cannot run, but a phi must name them.
void Emitter::completeMerge(unsigned K) {
  for (PHINode *Phi : {Merges[K].Next, Merges[K].Record, Merges[K].Number}) {
    if (!Phi)
      continue;
    SmallPtrSet<BasicBlock *, 4> Named(Phi->block_begin(), Phi->block_end());
    for (BasicBlock *Before : predecessors(Phi->getParent()))
      if (!Named.count(Before))
        Phi->addIncoming(PoisonValue::get(Phi->getType()), Before);
  }
}

/// if (pos >= state.limit) { __tk_flip(); pos = state.pos; }, with the position that is `Known`, or state.pos, before
/// segment `K`
void Emitter::checkForRoom(Instruction *Begin, Value *Known, unsigned K) {
  BasicBlock *Head = Begin->getParent();
  BasicBlock *Tail = Head->splitBasicBlock(Begin->getIterator());
  BasicBlock *Full = BasicBlock::Create(C, "tk.full", S.F);
  Head->getTerminator()->eraseFromParent();

  IRBuilder<> B(Head);
  B.SetCurrentDebugLocation(DebugLoc());
  Type *Pointer = B.getPtrTy();
  Value *State = state(B);
  Value *First = Known ? Known : ours(B.CreateLoad(Pointer, State, "tk.pos"));
  Value *Limit = ours(B.CreateLoad(Pointer, B.CreateStructGEP(R.StateType, State, 1), "tk.limit"));
  B.CreateCondBr(B.CreateICmpUGE(First, Limit), Full, Tail, Unlikely);

  B.SetInsertPoint(Full);
  const Segment &Seg = S.Segments[K];
  bool IsUnderWay = Keep && !(Seg.Flags & TK_BLOCK_ENTRY);
  if (IsUnderWay)
    Keep->show(B, K);
  if (Keep && (Seg.Flags & TK_BLOCK_LOOP_HEADER) && !Paths.isInRun(K))
    Keep->looks(B, Seg.Parent);
  call(B, R.Flip, {});
  if (IsUnderWay)
    Keep->hide(B);
  if (Unoptimised) {
    B.CreateBr(Tail);
    B.SetInsertPoint(Tail, Tail->begin());
    Here.Record = ours(B.CreateLoad(Pointer, State, "tk.pos"));
  } else {
    Value *Second = ours(B.CreateLoad(Pointer, State, "tk.pos"));
    B.CreateBr(Tail);
    B.SetInsertPoint(Tail, Tail->begin());
    PHINode *Merged = B.CreatePHI(Pointer, 2, "tk.pos");
    Merged->addIncoming(First, Head);
    Merged->addIncoming(Second, Full);
    Here.Record = Merged;
  }
  Here.From = Here.Record;
  Here.Words = 1;
}

void Emitter::write(const Operation &Op, Instruction *Begin) {
  Instruction *At = !Op.At ? Begin : Op.After ? Op.At->getNextNode() : Op.At;
  Builder B(At);
  SmallVector<Value *, 4> Words = recordedWords(Op, B);
  for (Value *Word : Words) {
    ours(B.CreateAlignedStore(Word, next(B), Align(8)));
    Here.Words += 1;
  }
  if (Keep)
    Keep->operation(B, Op, Words);
}

/// *(atomic release) record = id; state.pos = next; the record ends with segment `K`, ~0u: it changes no activation,
/// and control goes on at `Target` if that is known
void Emitter::publish(IRBuilder<> &B, Value *Next, unsigned K, const BasicBlock *Target) {
  Value *Id = B.CreateInBoundsGEP(B.getInt8Ty(), IsHuge ? opaque(B, Ids) : static_cast<Value *>(Ids), {Here.Number});
  StoreInst *Publish = ours(B.CreateAlignedStore(Id, Here.Record, Align(8)));
  Publish->setAtomic(AtomicOrdering::Release);
  ours(B.CreateStore(Next, state(B)));
  if (Keep && K != ~0u)
    Keep->path(B, K, Target);
}

/// Begins a region with segment `K`.
void Emitter::begin(unsigned K) {
  const Segment &Seg = S.Segments[K];
  if (Keep && Seg.Continues) {
    Builder B(Seg.Begin);
    Keep->hide(B);
  }
  if (Keep && Keep->isWayBack(K))
    Keep->wayBack(K, Seg.Begin);
  if (Keep && Keep->isDoor(K))
    Keep->door(K, Seg.Begin);
  if (Seg.Flags & TK_BLOCK_LANDING) {
    Builder B(Seg.Begin);
    call(B, R.Landing, {S.Frame});
    if (Keep)
      Keep->landed(B);
  }
  if (Keep && (Seg.Flags & TK_BLOCK_ENTRY))
    Keep->watch(Seg.Begin, true);
  Value *Known = nullptr;
  if (!isReloaded(K)) {
    Builder B(Seg.Begin);
    Known = Merges[K].Next ? Merges[K].Next : next(B);
  }
  checkForRoom(Seg.Begin, Known, K);
  if (Keep) {
    Builder B(Seg.Begin);
    if (Seg.Flags & TK_BLOCK_ENTRY)
      Keep->entered(B);
    if (Seg.Flags & TK_BLOCK_LOOP_HEADER)
      Keep->iterated(B, Seg.Parent);
  }
  Here.Number = ConstantInt::get(Type::getInt64Ty(C), Paths.base(K));
}

void Emitter::segment(unsigned K) {
  const Segment &Seg = S.Segments[K];
  if (Paths.isInRun(K))
    return;
  if (Paths.starts(K))
    begin(K);
  else if (const Merge &M = Merges[K]; M.Next)
    Here = {M.Record, M.Number, M.Next, 0};
  for (const Operation &Op : ArrayRef(S.Ops).slice(Seg.FirstOp, Seg.Ops))
    write(Op, Seg.Begin);
  bool Last = S.OfBlock.lookup(Seg.Parent).second == K;
  if (Seg.EndsWithCall || (!Last && Paths.starts(K + 1))) {
    Builder B(Seg.End);
    Here.From = next(B);
    Here.Words = 0;
    publish(B, Here.From, K);
    if (Keep && Seg.EndsWithCall)
      Keep->show(B, Last || !S.Segments[K + 1].Continues ? ~0u : K + 1);
  } else if (Last) {
    leave(K);
  } else if (uint64_t Increment = Paths.steps(K).front().Increment) {
    Builder B(Seg.End);
    Here.Number = B.CreateAdd(Here.Number, B.getInt64(Increment));
  }
}

/// Control leaves a basic block: the record is finished where another region follows.
void Emitter::leave(unsigned K) {
  Instruction *End = S.Segments[K].End;
  Builder B(End);
  Value *Position = next(B);
  bool Finished = Paths.steps(K).empty();
  if (Finished)
    publish(B, Position, K, End->getParent()->getSingleSuccessor());
  SmallSetVector<BasicBlock *, 4> Targets(succ_begin(End->getParent()), succ_end(End->getParent()));
  for (BasicBlock *Next : Targets) {
    auto Known = S.OfBlock.find(Next);
    if (Known == S.OfBlock.end())
      continue;
    unsigned First = Known->second.first;
    BasicBlock *From = End->getParent();
    Value *At = Position;
    if (Paths.isInRun(First))
      BeforeRun[Next] = Position;
    unsigned Run = groundTruthRunLeft(S.Segments[K].Parent, Next);
    if ((!Finished && Paths.starts(First)) || Run != ~0u) {
      From = splitEdges(End, Next);
      Instruction *Last = From->getTerminator();
      if (!Finished) {
        Builder OnEdge(Last);
        publish(OnEdge, Position, K, Next);
      }
      if (Run != ~0u) {
        Place Before = Here;
        At = writeRun(Run, Last, Position);
        Here = Before;
        From = Last->getParent();
      }
    }
    arrive(First, From, At, numberAt(K, First, B));
  }
}

/// The number of the path when it goes on from segment `K` to segment `First`.
Value *Emitter::numberAt(unsigned K, unsigned First, IRBuilder<> &B) {
  for (const Regions::Step &To : Paths.steps(K))
    if (To.To == First && To.Increment)
      return B.CreateAdd(Here.Number, B.getInt64(To.Increment));
  return Here.Number;
}

/// Control comes to segment `First`, with which a basic block begins, from the block `From`.
void Emitter::arrive(unsigned First, BasicBlock *From, Value *Position, Value *Number) {
  Merge &M = Merges[First];
  if (!M.Next)
    return;
  for (BasicBlock *Before : predecessors(M.Next->getParent())) {
    if (Before != From)
      continue;
    M.Next->addIncoming(Position, From);
    if (M.Record) {
      M.Record->addIncoming(Here.Record, From);
      M.Number->addIncoming(Number, From);
    }
  }
}

/// The run loop that control leaves on this edge, if its iterations have records of their own; else ~0u.
unsigned Emitter::groundTruthRunLeft(const BasicBlock *From, const BasicBlock *To) const {
  if (Paths.GroundTruth)
    for (unsigned Number = 0; Number < Paths.Runs.size(); ++Number)
      if (Paths.Runs[Number].Exiting == From && Paths.Runs[Number].Exit == To)
        return Number;
  return ~0u;
}

/// Writes the record of a run before `Position`, at the position that is `Known`; returns where the next one goes.
Value *Emitter::writeRun(unsigned Number, Instruction *Position, Value *Known) {
  const RunLoop &Run = Paths.Runs[Number];
  checkForRoom(Position, Known, Run.Segments.front());
  Builder B(Position);
  Value *Iterations = Run.Trips;
  if (Paths.GroundTruth && Run.TestsAtHeader) // all visits of the header are to be compared
    Iterations = B.CreateAdd(Iterations, B.getInt64(1));
  ours(B.CreateAlignedStore(Iterations, next(B), Align(8)));
  Here.Words += 1;
  Here.Number = B.getInt64(Paths.firstRun() + Number);
  Value *Next = next(B);
  publish(B, Next, ~0u);
  if (Keep && !Paths.GroundTruth && !Run.TestsAtHeader) { // else the record of the header's last visit follows at once
    Keep->iteration(B, Run.Header, B.CreateSub(Iterations, B.getInt64(1)));
    Keep->path(B, Run.Segments.back());
  }
  return Next;
}

/// Control leaves a run loop: its record is written, and where its header was visited once more a region begins.
void Emitter::leaveRun(unsigned Number) {
  const RunLoop &Run = Paths.Runs[Number];
  unsigned Header = Run.Segments.front(), After = S.OfBlock.lookup(Run.Exit).first;
  Instruction *Last = splitEdges(S.Segments[S.OfBlock.lookup(Run.Exiting).first].End, Run.Exit)->getTerminator();
  Value *Position = writeRun(Number, Last, BeforeRun.lookup(Run.Header));
  Builder B(Last);
  if (Run.TestsAtHeader) {
    Here = {Position, B.getInt64(Paths.base(Header)), Position, 1};
    Position = next(B);
    if (Paths.starts(After)) {
      publish(B, Position, Header);
      if (Keep)
        Keep->iteration(B, Run.Header, Run.Trips);
    }
  }
  arrive(After, Last->getParent(), Position, Run.TestsAtHeader ? numberAt(Header, After, B) : Here.Number);
}

/// One new block on all edges from a branch or switch to `Next`.
BasicBlock *Emitter::splitEdges(Instruction *Terminator, BasicBlock *Next) {
  BasicBlock *From = Terminator->getParent();
  BasicBlock *Edge = BasicBlock::Create(C, "tk.edge", S.F, Next);
  BranchInst::Create(Next, Edge)->setDebugLoc(Terminator->getDebugLoc());
  Terminator->replaceSuccessorWith(Next, Edge);
  for (PHINode &Phi : Next->phis()) {
    int Index = Phi.getBasicBlockIndex(From);
    if (Index < 0)
      continue; // one of ours
    Phi.setIncomingBlock(Index, Edge);
    while ((Index = Phi.getBasicBlockIndex(From)) >= 0)
      Phi.removeIncomingValue(Index, /*DeletePHIIfEmpty=*/false);
  }
  return Edge;
}

} // namespace

void emit(const SegmentedFunction &S, const Regions &Paths, Runtime &R, GlobalVariable *Ids, const Resumes *Keep,
          Twin *Other) {
  if (!Keep)
    return Emitter(S, Paths, R, Ids, nullptr).run();
  ActivationKeeper Keeper(S, Paths, R, *Keep, Other);
  Emitter(S, Paths, R, Ids, &Keeper).run();
  if (Other)
    Other->connect(R, Ids, Keep->Armed, Keeper.activation(), Keeper.shadows());
}

} // namespace tracekit
