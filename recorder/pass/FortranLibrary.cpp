// FortranLibrary.cpp: see FortranLibrary.h.
#include "FortranLibrary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tracekit {

static constexpr StringLiteral Prefix = "_FortranA"; // A is the interface's version, with the first one until today

bool isFortranArithmetic(StringRef Name) {
  static constexpr StringLiteral All[] = {
      "Ceiling",       "ErfcScaled", "Exponent", "FPow",      "Floor", "Fraction",    "ModInteger", "ModReal",
      "ModuloInteger", "ModuloReal", "Nearest",  "RRSpacing", "Nint",  "SetExponent", "Scale",      "Spacing"};
  if (!Name.consume_front(Prefix))
    return false;
  StringRef Plain = Name.rtrim("0123456789_ik"); // the kinds of its numbers: Exponent8_4; of a power's exponent: FPow8i
  return Plain.size() < Name.size() && isDigit(Name[Plain.size()]) && is_contained(All, Plain);
}

bool isFortranInquiry(StringRef Name) {
  static constexpr StringLiteral All[] = {"ClassIs",
                                          "ExtendsTypeOf",
                                          "IsAssumedSize",
                                          "IsContiguous",
                                          "LboundDim",
                                          "PointerIsAssociated",
                                          "PointerIsAssociatedWith",
                                          "SameTypeAs",
                                          "Size",
                                          "SizeDim"};
  return Name.consume_front(Prefix) && is_contained(All, Name);
}

} // namespace tracekit
