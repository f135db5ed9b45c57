// DoorLives.cpp: see Twins.h. What is alive at doors, and how the clean body hands it over to the twin.
//
// Whatever is alive at a door has a stack slot for a while, which is made a register again at the end.
#include "Compat.h"
#include "Twins.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace tracekit {

static constexpr uint64_t FirstLife = 8;    // behind the number of the door
static constexpr unsigned ManyLives = 4096; // of all doors of a function together

/// The values of the program that are used behind a door, each in the order in which the twin has them.
void Twin::findLives() {
  DenseMap<const BasicBlock *, Door *> OfFilling;
  for (auto &[K, D] : Doors)
    OfFilling[D.Filling] = &D;
  auto Wanted = wanted();
  SmallVector<BasicBlock *, 32> Work;
  for (BasicBlock &BB : *Body)
    for (Instruction &I : BB) {
      if (I.use_empty() || !CleanOf.count(&I))
        continue;
      SmallPtrSet<BasicBlock *, 32> Seen;
      for (Use &U : I.uses()) {
        auto *User = cast<Instruction>(U.getUser());
        auto *Phi = dyn_cast<PHINode>(User);
        BasicBlock *In = Phi ? Phi->getIncomingBlock(U) : User->getParent();
        if (In != &BB && In != Common && Seen.insert(In).second)
          Work.push_back(In);
      }
      if (auto Known = Wanted.find(&I); Known != Wanted.end())
        for (Door *D : Known->second)
          if (Seen.insert(D->Filling).second)
            Work.push_back(D->Filling);
      while (!Work.empty()) {
        BasicBlock *At = Work.pop_back_val();
        if (Door *D = OfFilling.lookup(At))
          D->Lives.push_back(&I);
        for (BasicBlock *Before : predecessors(At))
          if (Before != &BB && Seen.insert(Before).second)
            Work.push_back(Before);
      }
    }
}

/// The arguments that are used behind each door. The clean body need not keep the others for it.
void Twin::findArguments() {
  auto Wanted = wanted();
  for (Argument &A : Body->args()) {
    SmallPtrSet<BasicBlock *, 32> Reaching; // the blocks from which control comes to a use
    SmallVector<BasicBlock *, 32> Work;
    auto Reach = [&](BasicBlock *BB) {
      if (Reaching.insert(BB).second)
        Work.push_back(BB);
    };
    for (Use &U : A.uses()) {
      auto *User = cast<Instruction>(U.getUser());
      auto *Phi = dyn_cast<PHINode>(User);
      if (User->getParent() != Common)
        Reach(Phi ? Phi->getIncomingBlock(U) : User->getParent());
    }
    for (Door *D : Wanted.lookup(&A))
      Reach(D->Filling);
    while (!Work.empty())
      for (BasicBlock *Before : predecessors(Work.pop_back_val()))
        Reach(Before);
    bool Everywhere = true;
    for (auto &[K, D] : Doors)
      if (A.hasStructRetAttr() || Reaching.count(D.Filling))
        D.Arguments.insert(&A);
      else
        Everywhere = false;
    if (Everywhere)
      continue;
    AttributeMask Untrue = AttributeFuncs::getUBImplyingAttributes(); // of what is passed where nothing is alive
    Untrue.addAttribute(Attribute::Returned);
    Body->removeParamAttrs(A.getArgNo(), Untrue);
  }
}

/// Whether what the instruction computes follows from its operands alone, and at no great cost.
static bool isRepeatable(const Instruction &I) {
  return isa<GetElementPtrInst, CastInst, CmpInst, SelectInst>(I) || (isa<BinaryOperator>(I) && !I.isIntDivRem());
}

/// What follows from other values that are alive at the door is computed again behind it. Else the clean body would
/// keep the address of each member of a structure in a register of its own, for the doors alone.
void Twin::deriveLives(Door &D) {
  SmallPtrSet<const Value *, 32> Alive(D.Arguments.begin(), D.Arguments.end()), Looked;
  Alive.insert(D.Lives.begin(), D.Lives.end());
  std::function<void(Instruction *)> Look = [&](Instruction *Life) {
    if (!Looked.insert(Life).second || !isRepeatable(*Life) ||
        !all_of(Life->operands(), [&](const Use &Of) { return isa<Constant>(Of) || Alive.contains(Of); }))
      return;
    for (Use &Of : Life->operands())
      if (auto *Before = dyn_cast<Instruction>(Of))
        Look(Before);
    D.Derived.insert(Life);
  };
  for (Instruction *Life : D.Lives)
    Look(Life);
  erase_if(D.Lives, [&](Instruction *Life) { return D.Derived.contains(Life); });
}

uint64_t Twin::place(Type *T, uint64_t &End) {
  const DataLayout &DL = Body->getParent()->getDataLayout();
  Align Own = DL.getABITypeAlign(T);
  Strictest = std::max(Strictest, Own);
  uint64_t At = alignTo(End, Own);
  End = At + DL.getTypeAllocSize(T);
  LivesEnd = std::max(LivesEnd, End);
  return At;
}

/// Where the clean body stores what is alive at the doors, each value in one place.
void Twin::placeLives() {
  size_t HandedOver = 0;
  DenseMap<Instruction *, uint64_t> PlaceOf;
  uint64_t End = FirstLife;
  for (auto &[K, D] : Doors) {
    deriveLives(D);
    HandedOver += D.Lives.size();
    for (Instruction *Life : D.Lives) {
      auto [Known, New] = PlaceOf.try_emplace(Life, 0);
      if (New) {
        Known->second = place(Life->getType(), End);
        All.Lives.push_back(Life);
        All.Places.push_back(Known->second);
      }
      D.Places.push_back(Known->second);
    }
  }
  Shared = HandedOver > ManyLives;
  findCommon();
}

/// What follows from others at some doors, and is handed over at others, or follows from such values, cannot be
/// computed before the choice of a door.
void Twin::findCommon() {
  SmallSetVector<Instruction *, 32> Found;
  for (auto &[K, D] : Doors)
    Found.insert(D.Derived.begin(), D.Derived.end());
  for (Instruction *Life : All.Lives)
    if (Found.contains(Life))
      Mixed.insert(Life);
  for (size_t Before = ~size_t(0); Before != Mixed.size();) {
    Before = Mixed.size();
    for (Instruction *Life : Found)
      if (any_of(Life->operands(), [&](const Use &Of) { return Mixed.contains(Of); }))
        Mixed.insert(Life);
  }
  for (Instruction *Life : Found)
    if (!Mixed.contains(Life))
      All.Derived.insert(Life);
}

/// Those of a door's lives which these values are, or follow from.
Twin::Door Twin::needed(const Door &D, ArrayRef<const Value *> Roots) {
  SmallPtrSet<const Value *, 32> Needed;
  SmallVector<const Value *, 32> Work(Roots);
  while (!Work.empty()) {
    const Value *V = Work.pop_back_val();
    auto *I = const_cast<Instruction *>(dyn_cast<Instruction>(V));
    if (I && Needed.insert(I).second && D.Derived.contains(I))
      Work.append(I->op_begin(), I->op_end());
  }
  Door Out;
  for (auto [Life, Place] : zip(D.Lives, D.Places))
    if (Needed.contains(Life)) {
      Out.Lives.push_back(Life);
      Out.Places.push_back(Place);
    }
  for (Instruction *Life : D.Derived)
    if (Needed.contains(Life))
      Out.Derived.insert(Life);
  return Out;
}

/// What is taken before the choice: what is filled in there, and, if the twin keeps all in memory, what follows there.
Twin::Door Twin::neededByAll() {
  SmallVector<const Value *, 32> Roots;
  if (Shared)
    Roots.append(All.Derived.begin(), All.Derived.end());
  for (const auto &Item : wanted())
    Roots.push_back(Item.first);
  return needed(All, Roots);
}

/// What is taken at a door: everything, or, where the twin keeps all in memory, what could not be before.
Twin::Door Twin::neededAt(const Door &D) {
  SmallVector<const Value *, 32> Roots;
  for (Instruction *Life : D.Derived)
    if (!Shared || Mixed.contains(Life))
      Roots.push_back(Life);
  if (!Shared)
    Roots.append(D.Lives.begin(), D.Lives.end());
  return needed(D, Roots);
}

/// Loads the lives that the clean body has stored, computes what follows from them, and puts all into their slots.
void Twin::takeLives(const Door &D, Instruction *Position, const MapVector<Instruction *, AllocaInst *> &Slots) {
  IRBuilder<> B(Position);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Lives = Body->getArg(Body->arg_size() - 1);
  ValueToValueMapTy Taken; // by what the clean body calls it, whose instructions are still as they were
  for (Argument &A : F.args())
    Taken[&A] = Body->getArg(A.getArgNo());
  for (auto [Life, Place] : zip(D.Lives, D.Places)) {
    Value *From = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, Place);
    Value *Loaded = B.CreateLoad(Life->getType(), From);
    Taken[CleanOf[Life]] = Loaded;
    if (AllocaInst *Slot = Shared ? nullptr : Slots.lookup(Life)) // which is that place
      B.CreateStore(Loaded, Slot);
  }
  for (Instruction *Life : D.Derived) {
    auto *Clean = cast<Instruction>(CleanOf[Life]);
    Instruction *Again = B.Insert(Clean->clone());
    RemapInstruction(Again, Taken, RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
    Again->setDebugLoc(DebugLoc());
    Taken[Clean] = Again;
    if (AllocaInst *Slot = Slots.lookup(Life))
      B.CreateStore(Again, Slot);
  }
}

/// The twin's values are kept where the clean body puts them; if control came by the entry, in a place like it.
///
/// Where hundreds of doors hand over dozens of values each, as in an interpreter's loop, nearly every block would begin
/// with a phi for nearly every value, 150,000 in all in sqlite3VdbeExec, and allocating registers for them would take
/// half a minute. Most are on the stack in the end.
void Twin::shareMemory(const MapVector<Instruction *, AllocaInst *> &Slots) {
  DenseMap<Instruction *, uint64_t> PlaceOf;
  for (auto &[K, D] : Doors)
    for (auto [Life, Place] : zip(D.Lives, D.Places))
      PlaceOf[Life] = Place;
  uint64_t End = LivesEnd;
  for (auto &[Life, Slot] : Slots)
    if (!PlaceOf.count(Life))
      PlaceOf[Life] = place(Life->getType(), End);
  BasicBlock *Hall = &Body->getEntryBlock();
  IRBuilder<> B(Hall, Hall->begin());
  B.SetCurrentDebugLocation(DebugLoc());
  AllocaInst *Own = B.CreateAlloca(ArrayType::get(B.getInt8Ty(), LivesEnd), nullptr, "tk.lives");
  Own->setAlignment(Strictest);
  B.SetInsertPoint(Hall->getTerminator());
  Value *Given = Body->getArg(Body->arg_size() - 1);
  Value *Memory = hidden(B, B.CreateSelect(B.CreateIsNull(Given), Own, Given));
  for (auto &[Life, Slot] : Slots) {
    if (!Slot)
      continue;
    for (Use &U : make_early_inc_range(Slot->uses())) {
      auto *User = cast<Instruction>(U.getUser());
      if (User->getParent() == Hall) // the address of the twin's own stack object, which is another behind doors
        User->moveBefore(*Inside, Inside->getFirstInsertionPt());
      B.SetInsertPoint(User);
      U.set(B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Memory, PlaceOf.lookup(Life)));
    }
    Slot->eraseFromParent();
  }
}

/// The hall hands each door's lives on. `Promoted` gets the stack slots that are to be registers again.
void Twin::takeLives(SmallVectorImpl<AllocaInst *> &Promoted) {
  MapVector<Instruction *, AllocaInst *> Slots;
  Door First = neededByAll();
  SmallVector<Door, 16> Then;
  for (auto &[K, D] : Doors) {
    for (Instruction *Life : D.Lives)
      Slots[Life] = nullptr;
    for (Instruction *Life : D.Derived)
      Slots[Life] = nullptr;
    Then.push_back(neededAt(D));
  }
  for (auto &[Life, Slot] : Slots) {
    if (isa<AllocaInst>(Life)) // it may be the clean body's
      for (User *U : make_early_inc_range(Life->users()))
        if (auto *I = dyn_cast<IntrinsicInst>(U); I && I->isLifetimeStartOrEnd())
          I->eraseFromParent();
    Slot = Life->use_empty() ? nullptr : DemoteRegToStack(*Life);
  }
  takeLives(First, Common->getSinglePredecessor()->getTerminator(), Slots);
  for (auto &[K, D] : Doors) {
    BasicBlock *Door = BasicBlock::Create(Body->getContext(), "tk.door", Body, D.Filling);
    IRBuilder<> B(Door);
    B.SetCurrentDebugLocation(DebugLoc());
    Choice->addCase(B.getInt32(D.Number), Door);
    takeLives(Then[D.Number], B.CreateBr(D.Filling), Slots);
  }
  if (Shared)
    return shareMemory(Slots);
  for (auto &[Life, Slot] : Slots)
    if (Slot)
      Promoted.push_back(Slot);
}

/// Stack slots become registers again.
void Twin::promote(SmallVectorImpl<AllocaInst *> &Promoted) {
  erase_if(Promoted, [](AllocaInst *Slot) { return !isAllocaPromotable(Slot); });
  DominatorTree DT(*Body);
  AssumptionCache AC(*Body);
  PromoteMemToReg(Promoted, DT, &AC);
}

} // namespace tracekit
