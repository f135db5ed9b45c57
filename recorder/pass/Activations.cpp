// Activations.cpp: see Activations.h.
#include "Activations.h"

#include "QuietLoops.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace tracekit {

Value *ActivationKeeper::innermost(IRBuilder<> &B) {
  return B.CreateThreadLocalAddress(R.activations(*S.F->getParent()));
}

Value *ActivationKeeper::slot(IRBuilder<> &B, unsigned At) {
  return B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), Activation, At);
}

void ActivationKeeper::landed(IRBuilder<> &B) { ours(B.CreateStore(Activation, innermost(B))); }

void ActivationKeeper::watch(Instruction *Position, bool Enters) {
  IRBuilder<> B(Position);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *At = B.CreateConstInBoundsGEP1_64(B.getInt32Ty(), Keep.Layout, 3);
  Value *IsWatched = B.CreateIsNotNull(ours(B.CreateLoad(B.getInt32Ty(), At)));
  MDNode *Unlikely = MDBuilder(B.getContext()).createBranchWeights(1, 1u << 20);
  IRBuilder<> Cold(SplitBlockAndInsertIfThen(IsWatched, Position, false, Unlikely));
  FunctionCallee Callee = R.watched(*S.F->getParent());
  CallInst *Call = ours(Cold.CreateCall(Callee, {Keep.Layout, Activation, Cold.getInt32(Enters)}));
  Call->setCallingConv(CallingConv::PreserveMost);
  if (DISubprogram *Function = S.F->getSubprogram())
    Call->setDebugLoc(DILocation::get(B.getContext(), 0, 0, Function));
}

void ActivationKeeper::iteration(IRBuilder<> &B, const BasicBlock *Header, Value *Number) {
  if (std::optional<unsigned> At = loopAt(Header))
    keep(B, Number, *At);
}

std::optional<unsigned> ActivationKeeper::loopAt(const BasicBlock *Header) const {
  auto Known = find(Keep.Counted, Header);
  return Known == Keep.Counted.end() ? std::nullopt : std::optional(Keep.loopAt(Known - Keep.Counted.begin()));
}

void ActivationKeeper::door(unsigned K, Instruction *Position) {
  Other->opens(K, Position->getParent()->splitBasicBlock(Position->getIterator(), "tk.behind"));
}

void ActivationKeeper::wayBack(unsigned K, Instruction *Position) {
  IRBuilder<> B(Other->leavesAt(K, Position));
  B.SetCurrentDebugLocation(DebugLoc());
  left(B);
}

/// Room for the activation, and what tells a loop's first iteration from others.
void ActivationKeeper::begin() {
  BasicBlock &Entry = S.F->getEntryBlock();
  IRBuilder<> B(&Entry, Entry.begin());
  B.SetCurrentDebugLocation(DebugLoc());
  Activation = B.CreateAlloca(ArrayType::get(B.getInt64Ty(), Keep.words()), nullptr, "tk.activation");
  Activation->setAlignment(Align(8));
  for (const BasicBlock *Header : Keep.Counted) {
    auto *BB = const_cast<BasicBlock *>(Header);
    auto Known = S.OfBlock.find(BB);
    if (Known == S.OfBlock.end() || Paths.isInRun(Known->second.first) || (Other && Other->iteration(Header)))
      continue;
    if (Other && isQuiet(BB, S, Paths, Keep)) {
      countQuietly(BB);
      continue;
    }
    if (Keep.IsDeferred) {
      Counts[BB] = countIterations(Keep, BB);
      continue;
    }
    IRBuilder<> AtHeader(BB, BB->begin());
    AtHeader.SetCurrentDebugLocation(DebugLoc());
    PHINode *Phi = AtHeader.CreatePHI(AtHeader.getInt1Ty(), pred_size(BB), "tk.again");
    for (BasicBlock *Before : predecessors(BB))
      Phi->addIncoming(AtHeader.getInt1(Keep.isInside(Header, Before)), Before);
    Again[Header] = Phi;
  }
}

void ActivationKeeper::keep(IRBuilder<> &B, Value *Word, unsigned At) {
  if (Keep.IsDeferred)
    B.CreateStore(Word, shadow(At));
  else
    put(B, Word, At);
}

void ActivationKeeper::put(IRBuilder<> &B, Value *Word, unsigned At) {
  ours(B.CreateAlignedStore(Word, slot(B, At), Align(8)));
}

Value *ActivationKeeper::kept(IRBuilder<> &B, unsigned At) {
  if (Keep.IsDeferred)
    return B.CreateLoad(B.getInt64Ty(), shadow(At));
  return ours(B.CreateAlignedLoad(B.getInt64Ty(), slot(B, At), Align(8)));
}

AllocaInst *ActivationKeeper::shadow(unsigned At) {
  AllocaInst *&Known = Shadows[At];
  if (!Known) {
    IRBuilder<> B(Activation);
    B.SetCurrentDebugLocation(DebugLoc());
    Known = B.CreateAlloca(B.getInt64Ty(), nullptr, "tk.shadow");
  }
  return Known;
}

void ActivationKeeper::show(IRBuilder<> &B, unsigned K) {
  if (!Keep.IsDeferred)
    return;
  Value *Innermost = innermost(B);
  put(B, ours(B.CreateLoad(B.getPtrTy(), Innermost)), ActivationBelow);
  put(B, Keep.Layout, ActivationLayout);
  put(B, Activation, ActivationSelf);
  put(B, kept(B, ActivationPath), ActivationPath);
  put(B, B.getInt64(0), ActivationFrame);
  if (K != ~0u)
    for (unsigned At : Keep.WordsAt[K])
      put(B, kept(B, At), At);
  ours(B.CreateStore(Activation, Innermost));
}

void ActivationKeeper::hide(IRBuilder<> &B) {
  if (Keep.IsDeferred)
    ours(B.CreateStore(ours(B.CreateLoad(B.getPtrTy(), slot(B, ActivationBelow))), innermost(B)));
}

void ActivationKeeper::path(IRBuilder<> &B, unsigned K, const BasicBlock *Next) {
  if (S.Segments[K].Flags & (TK_BLOCK_RETURNS | TK_BLOCK_TAIL_CALL))
    left(B);
  else if (!Next || !Quiet.count(Next) || !Keep.isInside(Next, S.Segments[K].Parent))
    keep(B, B.getInt64(Keep.FirstPath + K), ActivationPath);
}

/// The loop's header gets two phis: the iteration, and the segment with which the one before ended.
void ActivationKeeper::countQuietly(BasicBlock *Header) {
  PHINode *Count = countIterations(Keep, Header);
  IRBuilder<> B(Header, Header->begin());
  B.SetCurrentDebugLocation(DebugLoc());
  PHINode *Last = B.CreatePHI(B.getInt64Ty(), pred_size(Header), "tk.last");
  for (BasicBlock *Before : predecessors(Header)) {
    Value *Segment = B.getInt64(S.OfBlock.lookup(Before).second);
    Last->addIncoming(Keep.isInside(Header, Before) ? Segment : PoisonValue::get(B.getInt64Ty()), Before);
  }
  Quiet[Header] = {Count, Last};
}

/// In a quiet loop the iteration before is kept here only, and where it ended.
void ActivationKeeper::looks(IRBuilder<> &B, const BasicBlock *Header) {
  auto [Count, Last] = Quiet.lookup(Header);
  if (!Count)
    return;
  if (std::optional<unsigned> At = loopAt(Header))
    put(B, B.CreateSub(Count, B.getInt64(1)), *At);
  Value *Before = ours(B.CreateLoad(B.getInt64Ty(), slot(B, ActivationPath)));
  Value *Path = B.CreateAdd(Last, B.getInt64(Keep.FirstPath));
  put(B, B.CreateSelect(B.CreateIsNull(Count), Before, Path), ActivationPath);
}

/// An operation has recorded its words: what registers hold, what begins and ends.
void ActivationKeeper::operation(IRBuilder<> &B, const Operation &Op, ArrayRef<Value *> Words) {
  if (Op.Defines != TK_NONE)
    keep(B, Words.front(), Keep.registerAt(Op.Defines));
  if (Op.Kind == TK_OP_FRAME)
    keep(B, Words.front(), ActivationFrame);
  if (Op.Kind == TK_OP_STACK_ALLOC) {
    unsigned At = Keep.objectAt(Keep.ObjectOf.lookup(&Op));
    bool Dynamic = Op.Flags & TK_OPFLAG_DYNAMIC_SIZE;
    keep(B, B.CreatePtrToInt(Op.Address, B.getInt64Ty()), At);
    keep(B, Dynamic ? Words[Op.BaseKind == TK_BASE_RECORDED] : B.getInt64(Op.Size), At + 1);
  }
  if (Op.Kind == TK_OP_STACK_FREE)
    end(B, Op.Address);
}

/// The newest object there ends: the last one alive of the operations that begin it.
void ActivationKeeper::end(IRBuilder<> &B, const Value *Address) {
  Value *Found = B.getFalse();
  for (const auto &[Alloc, Object] : reverse(Keep.ObjectOf)) {
    if (Alloc->Address != Address)
      continue;
    unsigned At = Keep.objectAt(Object) + 1;
    Value *Size = kept(B, At);
    keep(B, B.CreateSelect(Found, Size, B.getInt64(0)), At);
    Found = B.CreateOr(Found, B.CreateIsNotNull(Size));
  }
}

void ActivationKeeper::entered(IRBuilder<> &B) {
  for (unsigned Object = 0; Object < Keep.Objects; ++Object)
    keep(B, B.getInt64(0), Keep.objectAt(Object) + 1);
  if (Keep.IsDeferred)
    return;
  Value *Innermost = innermost(B);
  keep(B, ours(B.CreateLoad(B.getPtrTy(), Innermost)), ActivationBelow);
  keep(B, Keep.Layout, ActivationLayout);
  keep(B, Activation, ActivationSelf);
  if (!S.Frame)
    keep(B, B.getInt64(0), ActivationFrame);
  ours(B.CreateStore(Activation, Innermost));
}

void ActivationKeeper::left(IRBuilder<> &B) {
  if (!Keep.IsDeferred) {
    Value *Below = ours(B.CreateLoad(B.getPtrTy(), slot(B, ActivationBelow)));
    ours(B.CreateStore(Below, innermost(B)));
  }
  watch(&*B.GetInsertPoint(), false);
}

/// In memory, not in a register, if the function has no twin: control may come back by longjmp.
void ActivationKeeper::iterated(IRBuilder<> &B, const BasicBlock *Header) {
  Value *Count = Other ? Other->iteration(Header) : nullptr;
  if (!Count)
    Count = Counts.lookup(Header);
  if (Count)
    return iteration(B, Header, Count);
  PHINode *Phi = Again.lookup(Header);
  if (!Phi)
    return;
  unsigned At = *loopAt(Header);
  Value *Before = ours(B.CreateAlignedLoad(B.getInt64Ty(), slot(B, At), Align(8)));
  keep(B, B.CreateSelect(Phi, B.CreateAdd(Before, B.getInt64(1)), B.getInt64(0)), At);
}

} // namespace tracekit
