// SourceTypes.h: types as the source declares them.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"

namespace tracekit {

/// A type without names and qualifiers of it: typedef, const, volatile, restrict; of a member, the type of its value.
const llvm::DIType *plainType(const llvm::DIType *T);

/// What a reference to a type refers to, and an array of it is made of, without names and qualifiers.
const llvm::DIType *elementType(const llvm::DIType *T);

/// Whether OpenMP's reductions take a variable of the type in C and in C++: a number, an array of them, or a reference
/// to them; no structure, pointer, atomic or enumeration (C takes these), nor a complex number or one of more than 8
/// bytes, for which clang wants another library. Types that are not known count as numbers.
bool isReducible(const llvm::DIType *T);

/// Whether it is known that a variable of the type, or an array of it, holds no floating-point number.
bool isWhole(const llvm::DIType *T);

/// Whether `private` and `lastprivate` make copies of a variable of the type, or of an array of it, that run none of
/// the program's code: no class of which constructors, destructor or assignments are the program's and do something, or
/// are not for everyone, nor one that is not known whole, nor one with members that are constant or references.
bool isPlainCopy(const llvm::DIType *T);

} // namespace tracekit
