// Twins.cpp: see Twins.h. Which functions have a twin, where its doors are, and how the two bodies are made.
#include "Twins.h"

#include "Attributes.h"
#include "Compat.h"
#include "LoopDoors.h"
#include "RegistersAhead.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace tracekit {

/// The table of a computed goto: a constant that `F` alone uses, of addresses of its blocks.
static GlobalVariable *tableWith(const User *Use) {
  if (auto *Table = dyn_cast<GlobalVariable>(Use))
    return const_cast<GlobalVariable *>(Table);
  if (!isa<ConstantAggregate>(Use) || !Use->hasOneUse())
    return nullptr;
  return tableWith(*Use->user_begin());
}

/// The table's row of section tk_globals, which tells the runtime where it lies.
static bool isDescription(const User *Use) {
  return isa<ConstantStruct>(Use) && all_of(Use->users(), [](const User *Row) {
           auto *Placed = dyn_cast<GlobalVariable>(Row);
           return Placed && Placed->getSection() == "tk_globals";
         });
}

static bool callsNothing(iterator_range<BasicBlock::const_iterator> Range) {
  return none_of(Range, [](const Instruction &I) { return isa<CallBase>(I) && !isa<IntrinsicInst>(I); });
}

/// A block that goes to one of several addresses, and does nothing before that.
static bool jumpsTo(const BasicBlock &BB, const PHINode &Address) {
  auto *Jump = dyn_cast<IndirectBrInst>(BB.getTerminator());
  return Jump && Jump->getAddress() == &Address && Address.hasOneUse() && callsNothing({BB.begin(), BB.end()});
}

/// Whether what is read from the table is used by an indirect branch before anything is called. Else an address of the
/// clean body could be alive at a door, and the twin would go on with it.
static bool isJumpedTo(const Instruction &I) {
  if (!isa<GetElementPtrInst, LoadInst>(I))
    return false;
  const BasicBlock *BB = I.getParent();
  return all_of(I.uses(), [&](const Use &U) {
    auto *Next = cast<Instruction>(U.getUser());
    if (auto *Phi = dyn_cast<PHINode>(Next))
      return isa<LoadInst>(I) && Phi->getIncomingBlock(U) == BB && jumpsTo(*Phi->getParent(), *Phi) &&
             callsNothing({I.getIterator(), BB->end()});
    bool Jumps = isa<LoadInst>(I) ? isa<IndirectBrInst>(Next) : isJumpedTo(*Next);
    return Jumps && Next->getParent() == BB && callsNothing({I.getIterator(), Next->getIterator()});
  });
}

/// Whether `F` alone uses the table `V`, and only to jump.
static bool isUsedBy(const Value &V, const Function &F) {
  return all_of(V.users(), [&](const User *U) {
    if (auto *I = dyn_cast<Instruction>(U))
      return I->getFunction() == &F && isJumpedTo(*I);
    return isDescription(U) || (isa<ConstantExpr>(U) && isUsedBy(*U, F));
  });
}

/// Whether the tables of addresses of blocks can be made a second time. Addresses that code has elsewhere, in memory or
/// in variables, would be those of one body when the other jumps to them.
static bool canCopyTables(const Function &F) {
  for (const BasicBlock &BB : F) {
    const BlockAddress *Address = BB.hasAddressTaken() ? BlockAddress::lookup(&BB) : nullptr;
    if (!Address)
      continue;
    for (const User *U : Address->users()) {
      if (auto *Phi = dyn_cast<PHINode>(U); Phi && Phi->getFunction() == &F && jumpsTo(*Phi->getParent(), *Phi))
        continue;
      const GlobalVariable *Table = isa<Instruction>(U) ? nullptr : tableWith(U);
      if (!Table || !Table->hasLocalLinkage() || !Table->isConstant() || !isUsedBy(*Table, F))
        return false;
    }
  }
  return true;
}

/// What of an instruction ties it to its function or its frame.
static bool isBound(const Instruction &I) {
  if (auto *A = dyn_cast<AllocaInst>(&I))
    return A->isSwiftError() || A->isUsedWithInAlloca();
  if (isa<CallBrInst>(I) || (I.isEHPad() && !isa<LandingPadInst>(I)) || I.getType()->isTokenTy())
    return true;
  auto *Call = dyn_cast<CallInst>(&I);
  if (!Call)
    return false;
  if (auto *Intrinsic = dyn_cast<IntrinsicInst>(Call))
    switch (Intrinsic->getIntrinsicID()) {
    case Intrinsic::vastart:
    case Intrinsic::stacksave:
    case Intrinsic::stackrestore:
    case Intrinsic::localescape:
      return true;
    default:
      return false;
    }
  return Call->isMustTailCall();
}

/// Where its stack objects lie is told by how the code addresses them. Pushes of arguments, which save space, would
/// come between.
static bool hasSecretObjects(const SegmentedFunction &S) {
  return S.F->hasOptSize() && any_of(S.Ops, [](const Operation &Op) { return Op.Kind == TK_OP_STACK_ALLOC; });
}

bool Twin::isPossible(const SegmentedFunction &S) {
  const Function &F = *S.F;
  if (Triple(targetTriple(*F.getParent())).getArch() != Triple::x86_64 || hasSecretObjects(S))
    return false;
  if (F.hasOptNone() || F.isVarArg() || F.hasFnAttribute(Attribute::ReturnsTwice))
    return false;
  if (any_of(instructions(F), [](const Instruction &I) { return returnsTwice(I) && !isSetjmp(I); }))
    return false;
  for (const Argument &A : F.args())
    for (Attribute::AttrKind Kind : {Attribute::InAlloca, Attribute::Preallocated, Attribute::Nest,
                                     Attribute::SwiftSelf, Attribute::SwiftError, Attribute::SwiftAsync})
      if (A.hasAttribute(Kind))
        return false;
  return none_of(instructions(F), isBound) && canCopyTables(F);
}

Twin::Twin(SegmentedFunction &S, const Regions &Paths, const Resumes &Keep, const DominatorTree &DT, const LoopInfo &LI)
    : S(S), Paths(Paths), Keep(Keep), F(*S.F) {
  findDoors(DT, LI);
  findWaysBack(LI);
  findObjects();
  dropRegisters();
  for (auto &Item : Doors) {
    Door &D = Item.second;
    erase_if(D.Loops, [&](const BasicBlock *Header) { return Header != D.Header && !Keep.Counted.contains(Header); });
    for (const BasicBlock *Header : D.Loops)
      count(Header);
  }
}

void Twin::findDoors(const DominatorTree &DT, const LoopInfo &LI) {
  auto LastOf = [&](const BasicBlock *BB) { return S.OfBlock.lookup(BB).second; };
  for (unsigned K = 0; K < S.Segments.size(); ++K) {
    const Segment &Seg = S.Segments[K];
    if (Seg.EndsWithCall && mayReenter(*Seg.End))
      Sites.push_back({Seg.End, K, {}});
    if (auto *Invoke = dyn_cast_or_null<InvokeInst>(Seg.Continues)) {
      addDoor(K, LastOf(Invoke->getParent()), DT, LI);
    } else if (Seg.Continues) {
      addDoor(K, K - 1, DT, LI);
    } else if (Seg.Flags & TK_BLOCK_LANDING) {
      for (const BasicBlock *Before : predecessors(Seg.Parent))
        if (S.OfBlock.count(Before)) {
          addDoor(K, LastOf(Before), DT, LI);
          break;
        }
    }
  }
  for (const LoopDoor &Of : loopDoors(S, DT, LI)) {
    unsigned K = S.OfBlock.lookup(Of.At).first;
    if (isDoor(K))
      continue;
    addDoor(K, LastOf(Of.Before), DT, LI);
    if (Of.Entering) {
      Door &D = Doors.find(K)->second;
      D.Header = Of.At;
      D.BehindAtFirst = LastOf(Of.Entering);
    }
  }
}

void Twin::addDoor(unsigned K, unsigned Behind, const DominatorTree &DT, const LoopInfo &LI) {
  Door &D = Doors[K];
  D = Door();
  D.Behind = Behind;
  D.Landing = S.Segments[K].Flags & TK_BLOCK_LANDING;
  if (const Instruction *Before = S.Segments[K].Continues; Before && isSetjmp(*Before))
    D.Setjmp = Before;
  const BasicBlock *BB = S.Segments[K].Parent;
  for (const Loop *L = LI.getLoopFor(BB); L; L = L->getParentLoop())
    if (Keep.LoopOf.count(L->getHeader()))
      D.Loops.push_back(L->getHeader());
  for (unsigned Other = 0; Other < S.Segments.size(); ++Other) {
    const Segment &Seg = S.Segments[Other];
    if (Seg.Parent == BB ? Other >= K : !DT.dominates(Seg.Parent, BB))
      continue;
    for (const Operation &Op : ArrayRef(S.Ops).slice(Seg.FirstOp, Seg.Ops))
      if (Op.Defines != TK_NONE)
        D.Registers.push_back(&Op);
  }
}

/// Which stack objects are alive at each door, on all ways to it.
void Twin::findObjects() {
  if (Keep.ObjectOf.empty())
    return;
  auto Run = [&](unsigned K, BitVector &Alive) {
    for (const Operation &Op : ArrayRef(S.Ops).slice(S.Segments[K].FirstOp, S.Segments[K].Ops)) {
      if (Op.Kind == TK_OP_STACK_ALLOC)
        Alive.set(Keep.ObjectOf.lookup(&Op));
      if (Op.Kind != TK_OP_STACK_FREE)
        continue;
      for (const auto &[Alloc, Object] : reverse(Keep.ObjectOf)) // the newest one ends
        if (Alloc->Address == Op.Address && Alive.test(Object)) {
          Alive.reset(Object);
          break;
        }
    }
  };
  ReversePostOrderTraversal<const Function *> Order(&F);
  DenseMap<const BasicBlock *, BitVector> After;
  auto Before = [&](const BasicBlock *BB) {
    BitVector Alive(Keep.Objects, !BB->isEntryBlock());
    for (const BasicBlock *From : predecessors(BB))
      if (auto Known = After.find(From); Known != After.end())
        Alive &= Known->second;
    return Alive;
  };
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (const BasicBlock *BB : Order) {
      BitVector Alive = Before(BB);
      if (auto Known = S.OfBlock.find(BB); Known != S.OfBlock.end())
        for (unsigned K = Known->second.first; K <= Known->second.second; ++K)
          Run(K, Alive);
      auto [Old, New] = After.try_emplace(BB, Alive);
      Changed |= New || Old->second != Alive;
      Old->second = Alive;
    }
  }
  auto List = [&](const BasicBlock *BB, unsigned End, SmallVectorImpl<const Operation *> &Out) {
    BitVector Alive = Before(BB);
    for (unsigned K = S.OfBlock.lookup(BB).first; K < End; ++K)
      Run(K, Alive);
    for (const auto &[Alloc, Object] : Keep.ObjectOf)
      if (Alive.test(Object))
        Out.push_back(Alloc);
  };
  for (auto &[K, D] : Doors)
    List(S.Segments[K].Parent, K, D.Objects);
  for (Site &At : Sites)
    List(S.Segments[At.Segment].Parent, At.Segment + 1, At.Objects);
}

/// Registers that nothing behind a door reads need not be alive there.
void Twin::dropRegisters() {
  if (Doors.empty())
    return;
  RegistersAhead Ahead(S);
  for (auto &[K, D] : Doors) {
    BitVector Wanted = Ahead.from(K);
    erase_if(D.Registers, [&](const Operation *Op) { return !Wanted.test(Op->Defines); });
  }
}

void Twin::count(const BasicBlock *Header) {
  PHINode *&Count = Counters[Header];
  if (!Count)
    Count = countIterations(Keep, const_cast<BasicBlock *>(Header));
}

/// Two bodies need two tables for their computed gotos.
void Twin::copyTables() {
  for (BasicBlock &BB : F) {
    BlockAddress *Address = BB.hasAddressTaken() ? BlockAddress::lookup(&BB) : nullptr;
    if (!Address)
      continue;
    for (User *U : Address->users()) {
      GlobalVariable *Table = isa<Instruction>(U) ? nullptr : tableWith(U);
      if (!Table || any_of(Tables, [&](auto &Known) { return Known.first == Table; }))
        continue;
      auto *Copy = new GlobalVariable(*F.getParent(), Table->getValueType(), true, GlobalValue::PrivateLinkage,
                                      Table->getInitializer(), Table->getName() + ".clean");
      Copy->setAlignment(Table->getAlign());
      Copy->setUnnamedAddr(Table->getUnnamedAddr());
      Copy->setComdat(F.getComdat());
      CleanOf[Table] = Copy;
      Tables.push_back({Table, Copy});
    }
  }
}

/// Moves all blocks of `From` to `To`, their addresses along with them.
static void moveAll(Function &From, Function &To) {
  SmallVector<std::pair<BasicBlock *, BlockAddress *>, 8> Taken;
  for (BasicBlock &BB : From)
    if (BB.hasAddressTaken())
      if (BlockAddress *Address = BlockAddress::lookup(&BB))
        Taken.push_back({&BB, Address});
  To.splice(To.begin(), &From);
  for (auto [BB, Old] : Taken) {
    Old->replaceAllUsesWith(BlockAddress::get(&To, BB));
    Old->destroyConstant();
  }
  for (unsigned A = 0; A < From.arg_size(); ++A)
    From.getArg(A)->replaceAllUsesWith(To.getArg(A));
}

static Constant *replaced(Constant *C, const DenseMap<Constant *, Constant *> &New) {
  if (Constant *Known = New.lookup(C))
    return Known;
  if (!isa<ConstantAggregate>(C))
    return C;
  SmallVector<Constant *, 64> Parts;
  for (Use &Part : C->operands())
    Parts.push_back(replaced(cast<Constant>(Part), New));
  if (auto *A = dyn_cast<ConstantArray>(C))
    return ConstantArray::get(A->getType(), Parts);
  if (auto *Struct = dyn_cast<ConstantStruct>(C))
    return ConstantStruct::get(Struct->getType(), Parts);
  return ConstantVector::get(Parts);
}

/// An internal function like `F` that is handed a door's lives, too, in the register for static chains.
static Function *makeBody(Function &F) {
  Module &M = *F.getParent();
  SmallVector<Type *, 8> Types(F.getFunctionType()->params());
  Types.push_back(PointerType::getUnqual(M.getContext()));
  auto *Type = FunctionType::get(F.getReturnType(), Types, false);
  Function *Body = Function::Create(Type, GlobalValue::InternalLinkage, F.getAddressSpace(), F.getName() + ".tk");
  M.getFunctionList().insert(F.getIterator(), Body); // the assembler wants it first: section tk_sites is linked to it
  makeInternalLike(*Body, F);
  Body->addParamAttr(F.arg_size(), Attribute::Nest);
  for (Argument &A : Body->args()) // by value is what the clean body is given, where it lies
    Body->removeParamAttr(A.getArgNo(), Attribute::ByVal);
  for (Function *One : {&F, Body}) { // call sites are known by function
    One->removeFnAttr(Attribute::AlwaysInline);
    One->removeFnAttr(Attribute::InlineHint);
    One->addFnAttr(Attribute::NoInline);
    One->setUWTableKind(UWTableKind::Async);
  }
  return Body;
}

/// Where objects of `alloca` lie, and those that the caller has put on the stack, only registers may know: address and
/// size are noted in the frame for who looks there.
void Twin::noteMovingObjects(Function &Clean) {
  BasicBlock &Entry = Clean.getEntryBlock();
  for (const auto &[Op, Number] : Keep.ObjectOf) {
    if (!isMoving(*Op))
      continue;
    Value *Object = CleanOf[Op->Address];
    auto *Made = dyn_cast<AllocaInst>(Object);
    IRBuilder<> B(&Entry, Entry.begin());
    B.SetCurrentDebugLocation(DebugLoc());
    Type *Word = B.getInt64Ty();
    AllocaInst *Note = B.CreateAlloca(ArrayType::get(Word, 2), nullptr, "tk.object");
    Note->setAlignment(Align(8));
    B.SetInsertPoint(Made ? Made->getNextNode() : Note->getNextNode());
    B.SetCurrentDebugLocation(DebugLoc());
    Value *Bytes = B.getInt64(Op->Size);
    if (isDynamic(*Op))
      Bytes = B.CreateMul(B.CreateZExtOrTrunc(Made->getArraySize(), Word), Bytes);
    B.CreateStore(B.CreatePtrToInt(Object, Word), Note, /*isVolatile=*/true);
    B.CreateStore(Bytes, B.CreateConstInBoundsGEP1_64(Word, Note, 1), /*isVolatile=*/true);
    Notes[Op] = Note;
  }
}

void Twin::split(Regions &Runs) {
  copyTables();
  for (auto &[K, Way] : WaysBack)
    for (const PHINode &V : Way.Header->phis())
      Way.Values.push_back(const_cast<PHINode *>(&V));
  Function *Clean = CloneFunction(&F, CleanOf);
  noteMovingObjects(*Clean);
  auto CleanFor = [&](Instruction *I) { return cast<Instruction>(CleanOf[I]); };
  for (auto &[K, D] : Doors)
    D.Clean = CleanFor(S.Segments[K].Begin);
  for (Site &At : Sites)
    At.Call = CleanFor(At.Call);
  SmallVector<std::pair<BasicBlock *, BasicBlock *>, 8> Taken; // of the instrumented and the clean body
  for (BasicBlock &BB : F)
    if (BB.hasAddressTaken())
      Taken.push_back({&BB, cast<BasicBlock>(CleanOf[&BB])});

  Body = makeBody(F);
  DISubprogram *Described = F.getSubprogram(), *Again = Clean->getSubprogram();
  F.setSubprogram(nullptr);
  Clean->setSubprogram(nullptr);
  moveAll(F, *Body);
  moveAll(*Clean, F);
  Clean->eraseFromParent();
  Body->setSubprogram(Described);
  F.setSubprogram(Again);

  DenseMap<Constant *, Constant *> New;
  for (auto [BB, Copy] : Taken)
    New[BlockAddress::get(Body, BB)] = BlockAddress::get(&F, Copy);
  for (auto [Table, Copy] : Tables)
    Copy->setInitializer(replaced(Table->getInitializer(), New));

  auto Follow = [&](Value *&V) {
    if (auto *A = dyn_cast_or_null<Argument>(V))
      V = Body->getArg(A->getArgNo());
  };
  for (Operation &Op : S.Ops)
    for (Value **V : {&Op.Address, &Op.Base, &Op.Bytes, &Op.Mask})
      Follow(*V);
  for (RunLoop &Run : Runs.Runs)
    Follow(Run.Trips);
  S.F = Body;
}

} // namespace tracekit
