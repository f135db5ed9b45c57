// SourceAccesses.cpp: see SourceAccesses.h.
#include "SourceAccesses.h"

#include "Names.h"
#include "References.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

/// The addresses that an instruction may get to memory by.
static SmallVector<const Value *, 4> addressesIn(const Instruction &I) {
  if (const Value *Pointer = getLoadStorePointerOperand(&I))
    return {Pointer};
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return {Update->getPointerOperand()};
  if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
    return {Exchange->getPointerOperand()};
  SmallVector<const Value *, 4> Given;
  auto *Call = dyn_cast<CallBase>(&I);
  if (Call && !I.isDebugOrPseudoInst() && !I.isLifetimeStartOrEnd())
    for (const Value *Argument : Call->args())
      if (Argument->getType()->isPointerTy())
        Given.push_back(Argument);
  return Given;
}

static std::string keyOf(const DILocation &At, StringRef Name) { return placeKey(At) + " " + Name.str(); }

void SourceAccesses::look(const Instruction &I) {
  const DILocation *At = I.getDebugLoc().get();
  if (!At)
    return;
  SmallVector<const Value *, 4> Addresses = addressesIn(I);
  lookForReferences(*At, Addresses);
  bool Points = false;
  for (const Value *Address : Addresses) {
    const Value *Object = getUnderlyingObject(Address, /*MaxLookup=*/0);
    // Nothing gets to what a unit of Fortran assigns by another name, unless a pointer was set to it before.
    Points |= !isa<Constant, AllocaInst>(Object) && !isFortran(*At);
    StringRef Name = isa<GlobalVariable>(Object) ? namedMemory(Object) : "";
    if (Name.empty() || !At->getLine() || Text.hasName(*At, Name))
      continue;
    Points = true;
    Renamed.insert(keyOf(*At, Name));
    enter(*Object, false);
    Addressed.insert(Name);
  }
  if (!Points)
    return;
  auto [Entry, New] = Places.try_emplace(placeKey(*At));
  Place &Here = Entry->second;
  Here.IsMixed = !New || !isa<CallBase>(I);
  for (const Value *Address : Addresses)
    Here.Named.insert(namedMemory(Address));
}

void SourceAccesses::lookForReferences(const DILocation &At, ArrayRef<const Value *> Addresses) {
  for (const Value *Address : Addresses) {
    if (referenceIn(Address))
      continue;
    const DILocalVariable *V = referenceAt(Address);
    StringRef Name = V ? V->getName() : "";
    StringRef &Known = References.try_emplace(placeKey(At), Name).first->second;
    if (Known != Name)
      Known = "";
  }
}

/// Whether an address is used for nothing but to access what lies there: no pointer may hold it.
static bool isOnlyAccessed(const Value &Address) {
  return all_of(Address.uses(), [](const Use &U) {
    const User *By = U.getUser();
    unsigned Number = U.getOperandNo();
    if (isa<GEPOperator, BitCastOperator>(By))
      return Number == 0 && isOnlyAccessed(*By);
    if (isa<StoreInst>(By))
      return Number == StoreInst::getPointerOperandIndex();
    auto *I = dyn_cast<Instruction>(By);
    return I && (isa<LoadInst, MemIntrinsic>(I) || I->isDebugOrPseudoInst() || I->isLifetimeStartOrEnd());
  });
}

void SourceAccesses::enter(const Value &Variable, bool IsByName) {
  bool &Known = ByNameOnly.try_emplace(namedMemory(&Variable), true).first->second;
  Known &= IsByName;
}

void SourceAccesses::look(Function &F, const Touches &T) {
  for (const auto &[Variable, In] : T.Of)
    if (In.MayBeReached)
      Addressed.insert(namedMemory(Variable));
  for (const BasicBlock &BB : F)
    for (const Instruction &I : BB) {
      look(I);
      if (isa<AllocaInst>(I))
        enter(I, isOnlyAccessed(I));
    }
}

/// Whether a constant is part of what a global variable begins with.
static bool isInitial(const Constant &C) {
  return any_of(C.users(), [](const User *By) {
    return isa<GlobalVariable>(By) || (isa<Constant>(By) && !isa<GlobalValue>(By) && isInitial(*cast<Constant>(By)));
  });
}

void SourceAccesses::look(const GlobalVariable &G) {
  if (isInitial(G))
    Addressed.insert(namedMemory(&G));
  enter(G, G.hasLocalLinkage() && isOnlyAccessed(G)); // other modules may take another's address
}

bool SourceAccesses::isRenamed(const DILocation *At, StringRef Name) const {
  return At && Renamed.contains(keyOf(*At, Name));
}

StringRef SourceAccesses::reference(const DILocation *At, const Value &Address) const {
  if (!At || !At->getLine() || !At->getColumn())
    return "";
  if (const DILocalVariable *V = referenceAt(&Address))
    return V->getName();
  auto Known = References.find(placeKey(*At));
  return Known == References.end() ? "" : Known->second;
}

bool SourceAccesses::mayBeByPointer(const DILocation *At, StringRef Name) const {
  if (ByNameOnly.lookup(Name))
    return false;
  if (!At || !At->getLine() || !At->getColumn()) // of several places
    return Addressed.contains(Name);
  auto Known = Places.find(placeKey(*At));
  return Known != Places.end() && (Known->second.IsMixed || !Known->second.Named.contains(Name));
}

} // namespace tracekit
