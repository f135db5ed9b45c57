// WaysBack.cpp: see Twins.h. How control goes back from the instrumented body into the clean one, once no window is
// open.
//
// At the header of a loop the twin stores what differs by iteration where the door has stored what is alive, says so in
// place of the door's number, and returns to the door. The clean body goes on at the header: for it that is one more
// way to the next iteration.
#include "Compat.h"
#include "Twins.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/MDBuilder.h"

using namespace llvm;

namespace tracekit {

static constexpr unsigned StateStream = 3; // of struct tk_state: null outside of windows

/// Whether control that has left the loop may come to it again: by a loop around it, or a cycle that is no loop.
static bool comesAgain(const Loop &L) {
  SmallVector<BasicBlock *, 16> Work;
  L.getExitBlocks(Work);
  SmallPtrSet<const BasicBlock *, 32> Seen(Work.begin(), Work.end());
  while (!Work.empty())
    for (BasicBlock *Next : successors(Work.pop_back_val())) {
      if (Next == L.getHeader())
        return true;
      if (Seen.insert(Next).second)
        Work.push_back(Next);
    }
  return false;
}

/// Whether an iteration may leave an object in the frame of the body that runs it.
static bool makesObjects(const Loop &L) {
  return any_of(L.blocks(), [](const BasicBlock *BB) {
    return any_of(*BB, [](const Instruction &I) { return isa<AllocaInst>(I); });
  });
}

void Twin::findWaysBack(const LoopInfo &LI) {
  if (callsReturnTwice(F)) // a longjmp may go to the twin's frame until the function returns
    return;
  for (const Loop *L : LI) {
    const BasicBlock *Header = L->getHeader();
    auto Known = S.OfBlock.find(Header);
    if (Known == S.OfBlock.end() || Header->isEHPad() || isa<IndirectBrInst>(Header->getTerminator()) ||
        !Paths.starts(Known->second.first) || comesAgain(*L) || makesObjects(*L))
      continue;
    WayBack Way;
    Way.Header = Header;
    for (auto &[K, D] : Doors)
      if (L->contains(S.Segments[K].Parent))
        Way.From.push_back(K);
    if (!Way.From.empty())
      WaysBack[Known->second.first] = Way;
  }
}

Twin::WayBack *Twin::wayBackFrom(unsigned K) {
  for (auto &[Header, Way] : WaysBack)
    if (is_contained(Way.From, K))
      return &Way;
  return nullptr;
}

Instruction *Twin::leavesAt(unsigned K, Instruction *Position) {
  LLVMContext &C = Body->getContext();
  WayBack &Way = WaysBack.find(K)->second;
  Way.Behind = Position->getParent()->splitBasicBlock(Position->getIterator(), "tk.stay");
  Way.Closed = new UnreachableInst(C, BasicBlock::Create(C, "tk.closed", Body, Way.Behind));
  Way.Leave = BasicBlock::Create(C, "tk.back", Body, Way.Behind);
  Way.Leaving = new UnreachableInst(C, Way.Leave);
  return Way.Leaving;
}

/// In the twin: if (!armed && lives && a door of this loop && !state.stream) leave
void Twin::giveBack(WayBack &Way, Runtime &R, GlobalVariable *Armed) {
  LLVMContext &C = Body->getContext();
  MDNode *NoSanitize = MDNode::get(C, {});
  auto Ours = [&](LoadInst *Load) {
    Load->setMetadata(LLVMContext::MD_nosanitize, NoSanitize);
    return Load;
  };
  BasicBlock *Closed = Way.Closed->getParent(), *Ask = BasicBlock::Create(C, "tk.whence", Body, Way.Behind),
             *Look = BasicBlock::Create(C, "tk.look", Body, Way.Behind);
  Value *Lives = Body->getArg(Body->arg_size() - 1);
  Instruction *End = Way.Behind->getSinglePredecessor()->getTerminator();
  IRBuilder<> B(End);
  B.SetCurrentDebugLocation(DebugLoc());
  LoadInst *Word = Ours(B.CreateLoad(B.getInt8Ty(), Armed, /*isVolatile=*/true));
  B.CreateCondBr(B.CreateIsNull(Word), Closed, Way.Behind, MDBuilder(C).createBranchWeights(1, 1u << 20));
  End->eraseFromParent();

  B.SetInsertPoint(Way.Closed);
  B.CreateCondBr(B.CreateIsNull(Lives), Way.Behind, Ask);
  Way.Closed->eraseFromParent();

  B.SetInsertPoint(Ask);
  SwitchInst *Whence = B.CreateSwitch(Ours(B.CreateLoad(B.getInt32Ty(), Lives)), Way.Behind, Way.From.size());
  for (unsigned K : Way.From)
    Whence->addCase(B.getInt32(Doors.find(K)->second.Number), Look);

  B.SetInsertPoint(Look);
  Value *State = B.CreateThreadLocalAddress(R.State);
  Value *Stream = Ours(B.CreateLoad(B.getPtrTy(), B.CreateStructGEP(R.StateType, State, StateStream)));
  B.CreateCondBr(B.CreateIsNull(Stream), Way.Leave, Way.Behind);

  B.SetInsertPoint(Way.Leaving);
  B.CreateStore(B.getInt32(Way.Number), Lives);
  for (auto [V, Place] : zip(Way.Values, Way.Places))
    B.CreateStore(V, B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, Place));
  Type *Result = Body->getReturnType();
  Result->isVoidTy() ? B.CreateRetVoid() : B.CreateRet(PoisonValue::get(Result));
  Way.Leaving->eraseFromParent();
}

/// In the clean body: loads what the twin has stored, and goes on at the header.
void Twin::takeBack(WayBack &Way, Value *Lives) {
  auto *Header = cast<BasicBlock>(CleanOf[Way.Header]);
  Way.Clean = BasicBlock::Create(F.getContext(), "tk.again", &F);
  IRBuilder<> B(Way.Clean);
  B.SetCurrentDebugLocation(DebugLoc());
  for (auto [V, Place] : zip(Way.Values, Way.Places)) {
    Value *From = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, Place);
    cast<PHINode>(CleanOf[V])->addIncoming(B.CreateLoad(V->getType(), From), Way.Clean);
  }
  B.CreateBr(Header);
}

void Twin::openWaysBack(Runtime &R, GlobalVariable *Armed) {
  uint32_t Number = Doors.size();
  uint64_t End = LivesEnd;
  WaysBack.remove_if([&](auto &Item) {
    WayBack &Way = Item.second;
    erase_if(Way.From, [&](unsigned K) { return !Doors.count(K); });
    return !Way.Behind;
  });
  for (auto &[K, Way] : WaysBack) {
    Way.Number = Number++;
    for (PHINode *V : Way.Values)
      Way.Places.push_back(place(V->getType(), End));
    giveBack(Way, R, Armed);
  }
  if (WaysBack.empty())
    return;
  Body->removeFnAttr(Attribute::NoReturn);
  Body->removeRetAttrs(AttributeFuncs::getUBImplyingAttributes()); // nothing is returned then
  for (Argument &A : Body->args())
    Body->removeParamAttr(A.getArgNo(), Attribute::Returned);
}

} // namespace tracekit
