// Leaves.cpp: see Leaves.h.
#include "Leaves.h"

#include "FortranLibrary.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

/// Mathematics: each also with the suffixes f and l, of float and long double.
static constexpr StringLiteral Mathematics[] = {
    "acos",  "acosh", "asin",   "asinh", "atan",  "atan2",  "atanh",     "cbrt",      "ceil",    "copysign",
    "cos",   "cosh",  "erf",    "erfc",  "exp",   "exp10",  "exp2",      "expm1",     "fabs",    "fdim",
    "floor", "fma",   "fmax",   "fmin",  "fmod",  "hypot",  "ldexp",     "llrint",    "llround", "log",
    "log10", "log1p", "log2",   "logb",  "lrint", "lround", "nearbyint", "nextafter", "pow",     "remainder",
    "rint",  "round", "scalbn", "sin",   "sinh",  "sqrt",   "tan",       "tanh",      "tgamma",  "trunc"};

/// Characters, whose tables belong to the library, and what is a register in all but name.
static constexpr StringLiteral Others[] = {"__ctype_b_loc",
                                           "__ctype_tolower_loc",
                                           "__ctype_toupper_loc",
                                           "__errno_location",
                                           "abs",
                                           "isalnum",
                                           "isalpha",
                                           "isblank",
                                           "iscntrl",
                                           "isdigit",
                                           "isgraph",
                                           "islower",
                                           "isprint",
                                           "ispunct",
                                           "isspace",
                                           "isupper",
                                           "isxdigit",
                                           "labs",
                                           "llabs",
                                           "tolower",
                                           "toupper"};

static const StringSet<> &leaves() {
  static const StringSet<> All = [] {
    StringSet<> Names;
    for (StringRef Name : Mathematics)
      for (StringRef Suffix : {"", "f", "l"})
        Names.insert((Name + Suffix).str());
    for (StringRef Name : Others)
      Names.insert(Name);
    return Names;
  }();
  return All;
}

enum class Part { None, Integer, Number };

/// What a function of this name stores through each pointer: an int, or a number of its first argument's type.
static Part partOf(StringRef Name) {
  return StringSwitch<Part>(Name)
      .Cases("frexp", "frexpf", "frexpl", Part::Integer)
      .Cases("lgamma_r", "lgammaf_r", "lgammal_r", Part::Integer)
      .Cases("remquo", "remquof", "remquol", Part::Integer)
      .Cases("modf", "modff", "modfl", Part::Number)
      .Cases("sincos", "sincosf", "sincosl", Part::Number)
      .Default(Part::None);
}

/// Whether libstdc++ decides here when a hash table grows: a number in the table's policy is all that it changes.
static bool decidesGrowth(StringRef Name) {
  return Name.consume_front("_ZNKSt8__detail20_Prime_rehash_policy") &&
         (Name == "14_M_need_rehashEmmm" || Name == "11_M_next_bktEm");
}

SmallVector<StoredPart, 2> storedParts(const CallBase &Call) {
  SmallVector<StoredPart, 2> Parts;
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration())
    return Parts;
  if (decidesGrowth(Callee->getName()) && Call.arg_size())
    Parts.push_back(
        {Call.getArgOperand(0), sizeof(float) + sizeof(int32_t) + sizeof(uint64_t)}); // with the load factor
  if (Call.isNoBuiltin())
    return Parts;
  Part Stored = partOf(Callee->getName());
  if (Stored == Part::None || Call.arg_size() < 2 || !Call.getArgOperand(0)->getType()->isFloatingPointTy())
    return Parts;
  uint64_t Number = Callee->getParent()->getDataLayout().getTypeStoreSize(Call.getArgOperand(0)->getType());
  for (const Use &Argument : drop_begin(Call.args()))
    if (Argument->getType()->isPointerTy())
      Parts.push_back({Argument, Stored == Part::Integer ? sizeof(int32_t) : Number});
  return Parts;
}

bool isLeaf(StringRef Name) { return leaves().contains(Name) || isFortranArithmetic(Name); }

bool callsLeaf(const Instruction &I) {
  auto *Call = dyn_cast<CallInst>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Callee && Callee->isDeclaration() && !Call->isNoBuiltin() && !Call->isMustTailCall() &&
         isLeaf(Callee->getName());
}

} // namespace tracekit
