// Referents.h: where pointers lead, by the variables of the source that hold them.
//
// rustc gives accesses no alias information and computes addresses in bytes. Before any optimisation each variable has
// a place in memory whose type is declared, though: what is loaded from there, or stored there, has that type, too.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Operator.h"

namespace tracekit {

/// Bytes `Offset` on in an object; no type: not known.
struct Referent {
  const llvm::DIType *Type = nullptr;
  uint64_t Offset = 0;
};

/// Where the pointers of one function lead that has not been optimised.
class Referents {
public:
  explicit Referents(const llvm::DataLayout &DL) : DL(DL) {}

  /// What a pointer leads to: of an array its element, of structures inside others the outermost.
  Referent of(llvm::Value *Pointer) { return find(Pointer, 0); }

private:
  Referent find(llvm::Value *V, unsigned Depth);
  Referent compute(llvm::Value *V, unsigned Depth);
  Referent moved(llvm::GEPOperator &By, unsigned Depth);
  Referent returned(const llvm::Value &Call, uint64_t Offset) const;
  const llvm::DIType *loadedFrom(llvm::Value *Address, unsigned Depth);

  const llvm::DataLayout &DL;
  llvm::DenseMap<const llvm::Value *, Referent> Known; // none of a pointer that is being looked at: loops end
};

} // namespace tracekit
