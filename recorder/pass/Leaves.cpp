// Leaves.cpp: see Leaves.h.
#include "Leaves.h"

#include "FortranLibrary.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

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

bool handsBackParts(const CallBase &Call) {
  static constexpr StringLiteral Names[] = {"frexp", "modf", "remquo", "sincos"};
  static constexpr StringLiteral Reentrant[] = {"lgamma_r", "lgammaf_r", "lgammal_r"};
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration() || Call.isNoBuiltin())
    return false;
  StringRef Name = Callee->getName();
  bool HasSuffix = Name.take_back(1) == "f" || Name.take_back(1) == "l";
  return is_contained(Reentrant, Name) || is_contained(Names, Name) ||
         (HasSuffix && is_contained(Names, Name.drop_back()));
}

bool isLeaf(StringRef Name) { return leaves().contains(Name) || isFortranArithmetic(Name); }

bool callsLeaf(const Instruction &I) {
  auto *Call = dyn_cast<CallInst>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Callee && Callee->isDeclaration() && !Call->isNoBuiltin() && !Call->isMustTailCall() &&
         isLeaf(Callee->getName());
}

} // namespace tracekit
