// Calls.cpp: see Calls.h.
#include "Calls.h"

#include "Allocators.h"
#include "Atomics.h"
#include "Clocks.h"
#include "FortranLibrary.h"
#include "Leaves.h"
#include "Names.h"
#include "Operations.h"
#include "OwnEffects.h"

#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/ModRef.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tracekit {

uint32_t CallSites::signature(FunctionType *Type) {
  auto Known = Signatures.find(Type);
  if (Known != Signatures.end())
    return Known->second;
  std::string Text;
  raw_string_ostream(Text) << *Type;
  return Signatures[Type] = U.string(Text);
}

static const Function *directCallee(const CallBase &Call) {
  return dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
}

/// The library function that is called, or NotLibFunc.
static LibFunc libraryFunction(const CallBase &Call, const TargetLibraryInfo &TLI) {
  LibFunc Known;
  const Function *Callee = directCallee(Call);
  if (Callee && Callee->isDeclaration() && !Call.isNoBuiltin() && TLI.getLibFunc(*Callee, Known))
    return Known;
  return NotLibFunc;
}

/// Whether a call makes or ends a std::allocator of characters, which has no members: libstdc++ keeps those functions
/// to itself (`extern template`), and strings call them all the time.
static bool makesAllocator(const CallBase &Call) {
  const Function *Callee = directCallee(Call);
  StringRef Name = Callee ? Callee->getName() : "";
  if (!Name.consume_front("_ZNSaIcE") && !Name.consume_front("_ZNSaIwE"))
    return false;
  return Name.starts_with("C1E") || Name.starts_with("C2E") || Name == "D1Ev" || Name == "D2Ev";
}

static bool changesNothingInFortran(const CallBase &Call) {
  const Function *Callee = directCallee(Call);
  return Callee && Callee->isDeclaration() &&
         (isFortranArithmetic(Callee->getName()) || isFortranInquiry(Callee->getName()));
}

/// Whether a format has `%n`, or may have: of scanf nobody knows then whether it came so far.
static bool mayCount(const Value *Format) {
  StringRef Text;
  return !getConstantStringInfo(Format, Text) || Regex("%(hh?|ll?|[jtzq])?n").match(Text);
}

static bool changesItsArgumentsOnly(const CallBase &Call) {
  const Function *Callee = directCallee(Call);
  if (!Callee || !Callee->isDeclaration() || !hasOwnEffects(Callee->getName()))
    return false;
  return !Callee->getName().contains("scanf") || !mayCount(Call.getArgOperand(1));
}

/// Whether the callee is given a pointer, but for one to a copy of what it is given by value, as a complex `long
/// double`.
static bool takesPointers(const CallBase &Call) {
  return any_of(Call.args(), [&](const Use &Given) {
    return Given->getType()->isPtrOrPtrVectorTy() && !Call.isByValArgument(Call.getArgOperandNo(&Given));
  });
}

/// A number, or the two of a complex one.
static bool isOfFloats(const llvm::Type *T) {
  auto IsFloat = [](const llvm::Type *Part) { return Part->isFPOrFPVectorTy(); };
  auto *Parts = dyn_cast<StructType>(T);
  return Parts ? Parts->getNumElements() && all_of(Parts->elements(), IsFloat) : IsFloat(T);
}

/// Mathematics; this LLVM's list of the library's functions may not have all of it, as erf.
static bool onlyComputes(const CallBase &Call, LibFunc Library) {
  const FunctionType *Type = Call.getFunctionType();
  if (takesPointers(Call))
    return false;
  if (callsLeaf(Call) || (Library != NotLibFunc && Type->getReturnType()->isFPOrFPVectorTy()))
    return true;
  const Function *Callee = directCallee(Call);
  return Callee && Callee->isDeclaration() && isMathematics(Callee->getName()) && isOfFloats(Type->getReturnType());
}

/// Mathematics of the libraries of C (a return value, no pointers; errno aside) and Fortran, questions about Fortran's
/// descriptors, and what the attributes promise.
static bool isPure(const CallBase &Call, LibFunc Library) {
  if (Call.isInlineAsm()) // an empty text is a barrier for the compiler only
    return StringRef(cast<InlineAsm>(Call.getCalledOperand())->getAsmString()).trim().empty();
  if (const Function *Callee = directCallee(Call); Callee && isOrdering(Callee->getName()))
    return true;
  if (makesAllocator(Call) || changesNothingInFortran(Call) || readsClock(Call) || handsBackParts(Call) ||
      changesItsArgumentsOnly(Call))
    return true;
  MemoryEffects Effects = Call.getMemoryEffects();
  if (Effects.doesNotAccessMemory() || onlyComputes(Call, Library))
    return true;
  if (isa<IntrinsicInst>(Call) && touchesUnseenMemory(Call)) // neither the pass nor the runtime sees what it is given
    return false;
  switch (Library) {
  case LibFunc_memcpy:
  case LibFunc_memmove:
  case LibFunc_memset:
  case LibFunc_mempcpy:
  case LibFunc_bcopy:
  case LibFunc_bzero:
  case LibFunc_memcpy_chk:
  case LibFunc_memmove_chk:
  case LibFunc_mempcpy_chk:
  case LibFunc_memset_chk:
    return true;
  case LibFunc_strtof:
  case LibFunc_strtold: // the runtime does not see where they store what follows the number
    return isa<ConstantPointerNull>(Call.getArgOperand(1));
  default:
    return Effects.onlyReadsMemory() || Effects.onlyAccessesArgPointees();
  }
}

/// LLVM knows none of these with -fno-builtin, nor `::operator new(n)` that is called like a function, as
/// std::stable_sort does for its buffer.
static bool allocates(const CallBase &Call, const TargetLibraryInfo &TLI) {
  if (isAllocationFn(&Call, &TLI) || getFreedOperand(&Call, &TLI))
    return true;
  const Function *Callee = directCallee(Call);
  if (!Callee || !Callee->isDeclaration())
    return false;
  static constexpr StringLiteral Names[] = {"malloc",   "calloc", "realloc", "reallocarray",   "free",
                                            "memalign", "valloc", "pvalloc", "posix_memalign", "aligned_alloc"};
  static constexpr StringLiteral Operators[] = {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"}; // new, delete and their arrays
  StringRef Name = Callee->getName();
  return is_contained(Names, Name) || any_of(Operators, [&](StringRef Prefix) { return startsWith(Name, Prefix); });
}

/// Functions handed over by name, which the callee may call.
static SmallVector<const Function *, 2> functionArguments(const CallBase &Call) {
  SmallVector<const Function *, 2> Functions;
  for (const Use &Argument : Call.args())
    if (auto *F = dyn_cast<Function>(Argument->stripPointerCastsAndAliases()))
      Functions.push_back(F);
  return Functions;
}

static bool mayCallBack(const CallBase &Call, LibFunc Library, bool TakesFunctions) {
  const Function *Callee = directCallee(Call);
  if (!Callee || !Callee->isDeclaration() || Callee->isIntrinsic())
    return false;
  if (TakesFunctions || Library == LibFunc_qsort)
    return true;
  if (Library != NotLibFunc || Call.hasFnAttr(Attribute::NoCallback) || isFortranInquiry(Callee->getName()) ||
      readsClock(Call) || handsBackParts(Call) || changesItsArgumentsOnly(Call))
    return false;
  return any_of(Call.args(), [](const Use &U) { return U->getType()->isPtrOrPtrVectorTy(); });
}

/// Visits the users of `From`, and of those values that the visitor accepts, each with the value that it uses.
/// Unoptimised code keeps values in local variables meanwhile.
template <typename Visitor> static void follow(const Value *From, Visitor &&Visit) {
  SmallPtrSet<const Value *, 16> Seen;
  SmallVector<const Value *, 16> Waiting = {From};
  while (!Waiting.empty()) {
    const Value *V = Waiting.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    for (const User *By : V->users()) {
      auto *Store = dyn_cast<StoreInst>(By);
      if (Store && Store->getValueOperand() == V && isa<AllocaInst>(Store->getPointerOperand())) {
        for (const User *Of : Store->getPointerOperand()->users())
          if (isa<LoadInst>(Of))
            Waiting.push_back(Of);
      } else if (Visit(By, V)) {
        Waiting.push_back(By);
      }
    }
  }
}

/// Whether a value remains a place in the memory that another one points into.
static bool isPlaceIn(const User *By) { return isa<CastInst, GetElementPtrInst, PHINode, SelectInst, FreezeInst>(By); }

/// Whether a function returns what one of its calls returns, or a place in it.
static bool isReturned(const CallBase &Call) {
  bool Found = false;
  follow(&Call, [&](const User *By, const Value *) {
    Found |= isa<ReturnInst>(By);
    return isPlaceIn(By);
  });
  return Found;
}

static constexpr int MOST_DIMENSIONS = 4;

/// The call that returned the memory which an address lies in, or which holds the pointers that lead there.
static const CallBase *ownerOf(const Value *Address) {
  static constexpr int MOST_POINTERS = 8; // from one to the next
  for (int Followed = 0; Followed < MOST_POINTERS; ++Followed) {
    Address = getUnderlyingObject(Address);
    auto *Load = dyn_cast<LoadInst>(Address);
    if (!Load)
      return dyn_cast<CallBase>(Address);
    Address = Load->getPointerOperand();
    if (auto *Local = dyn_cast<AllocaInst>(Address))
      for (const User *Of : Local->users())
        if (auto *Store = dyn_cast<StoreInst>(Of); Store && Store->getPointerOperand() == Local)
          Address = Store->getValueOperand();
  }
  return nullptr;
}

/// Whether one of a call's arguments is a number that follows from those that its function was given.
static bool takesGivenNumber(const CallBase &Call) {
  bool Found = false;
  for (const Argument &Given : Call.getFunction()->args()) {
    if (!Given.getType()->isIntegerTy())
      continue;
    follow(&Given, [&](const User *By, const Value *) {
      Found |= By == &Call;
      return isa<CastInst, BinaryOperator, PHINode, SelectInst, FreezeInst, IntrinsicInst, ExtractValueInst>(By);
    });
  }
  return Found;
}

/// Whether a function hands on what a call allocates, if it does: a wrapper of malloc, which is told how much. It
/// returns that, or keeps it in memory that it hands on, in `Around` more of it at most: a row of a matrix.
static bool isHandedOn(const CallBase &Call, int Around) {
  if (!Call.getType()->isPointerTy() || !takesGivenNumber(Call))
    return false;
  bool Found = isReturned(Call);
  if (!Found && Around > 0)
    follow(&Call, [&](const User *By, const Value *Kept) {
      auto *Store = dyn_cast<StoreInst>(By);
      if (!Found && Store && Store->getValueOperand() == Kept) {
        const CallBase *Owner = ownerOf(Store->getPointerOperand());
        Found = Owner && Owner != &Call && isHandedOn(*Owner, Around - 1);
      }
      return isPlaceIn(By);
    });
  return Found;
}

void CallSites::declare(const Function &Callee) {
  if (!Callee.isDeclarationForLinker() || Callee.isIntrinsic() || !Declared.insert(&Callee).second)
    return;
  std::string Name = sourceName(Callee.getName(), Callee.getSubprogram());
  if (Name != Callee.getName())
    U.Declarations.push_back({U.string(Callee.getName()), U.string(Name)});
}

Row CallSites::add(const CallBase &Call, const TargetLibraryInfo &TLI, Row Op, Row Block) {
  LibFunc Library = libraryFunction(Call, TLI);
  const Function *Callee = directCallee(Call);
  SmallVector<const Function *, 2> Targets = functionArguments(Call);
  auto *Plain = dyn_cast<CallInst>(&Call);
  uint32_t Flags = 0;
  auto Set = [&](uint32_t Flag, bool Holds) { Flags |= Holds ? Flag : 0; };
  Set(TK_CALL_INLINE_ASM, !mayReenter(Call) && !callsLeaf(Call));
  Set(TK_CALL_INDIRECT, !Callee && !Call.isInlineAsm());
  Set(TK_CALL_MAY_CALL_BACK, mayCallBack(Call, Library, !Targets.empty()));
  Set(TK_CALL_PURE, isPure(Call, Library));
  Set(TK_CALL_NO_RETURN, Call.doesNotReturn());
  Set(TK_CALL_ALLOCATES, allocates(Call, TLI));
  Set(TK_CALL_RETURNS_TWICE, returnsTwice(Call));
  Set(TK_CALL_LEAF, callsLeaf(Call));
  Set(TK_CALL_TAIL, Plain && Plain->isMustTailCall());
  Set(TK_CALL_HANDED_ON, Call.getFunction()->getReturnType()->isPointerTy() && isHandedOn(Call, MOST_DIMENSIONS - 1));
  Set(TK_CALL_CLOCK, readsClock(Call));
  if (Callee)
    declare(*Callee);
  Row FirstTarget = U.CallTargets.size();
  for (const Function *Target : Targets)
    U.CallTargets.push_back({U.string(Target->getName())});
  StringRef Name = Callee ? behindDoor(*Callee) : "";
  U.Calls.push_back(
      {U.string(Name), signature(Call.getFunctionType()), Flags, FirstTarget, uint32_t(Targets.size()), Op, Block});
  return U.Calls.size() - 1;
}

} // namespace tracekit
