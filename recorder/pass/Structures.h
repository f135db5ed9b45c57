// Structures.h: which member of which structure an access is made to, and structures -> rows of `types` and `members`.
//
// Pointers say nothing of what they lead to. What does: the alias information that clang gives an access (the outermost
// structure and the offset in it), the structures that its address is computed through, in Rust the variables that
// hold the pointer (Referents.h), and where the optimiser has made other code of these, the place in the source, if all
// accesses there are to one member.
#pragma once

#include "SourceMap.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

namespace tracekit {

/// Bytes `Offset` on in a structure; no structure: not known.
struct MemberAt {
  const llvm::DICompositeType *Type = nullptr;
  uint64_t Offset = 0;
};

/// The structures that a module's debug information describes.
class Structures {
public:
  void look(const llvm::Module &M);

  /// What an instruction accesses at `Address`, if it or its address says so.
  MemberAt memberAt(const llvm::Instruction &I, const llvm::Value *Address) const;

  /// What `typedef struct { ... } name;` calls a structure that has no name of its own.
  llvm::StringRef aliasOf(const llvm::DICompositeType *Type) const { return Aliases.lookup(Type); }

private:
  struct Known {
    const llvm::DICompositeType *Type;
    uint64_t Bytes;
  };

  void enter(llvm::StringRef Name, const llvm::DICompositeType &Type);
  const llvm::DICompositeType *find(llvm::StringRef Name, uint64_t Bytes) const;
  MemberAt byAliasInformation(const llvm::Instruction &I) const;
  MemberAt byAddress(const llvm::Value *Address, const llvm::DataLayout &DL) const;

  llvm::StringMap<const llvm::DICompositeType *> ByIdentifier;
  llvm::DenseMap<const llvm::DICompositeType *, llvm::StringRef> Aliases;
  llvm::StringMap<llvm::SmallVector<Known, 1>> ByName; // as the front end's types are called, without parameters
};

/// The members that accesses of the source are made to, by place, before any optimisation.
class SourceMembers {
public:
  void look(llvm::Function &F);
  void look(const llvm::Module &M) { Known.look(M); }

  /// What an access is made to that stands in the optimised program.
  MemberAt find(const llvm::Instruction &I, const llvm::Value *Address) const;
  llvm::StringRef aliasOf(const llvm::DICompositeType *Type) const { return Known.aliasOf(Type); }

private:
  Structures Known;
  llvm::StringMap<MemberAt> Places; // of several members at one place, none
};

/// Rows of `types` and `members`.
class TypeRows {
public:
  TypeRows(Unit &U, SourceMap &Sources) : U(U), Sources(Sources) {}

  /// The row of a structure; of an array of them, of its elements; TK_NONE of anything else.
  ///
  /// `Known`: what a structure is called that has no name, if `T` does not say so.
  Row of(const llvm::DIType *T, llvm::StringRef Known = "");

private:
  Row add(const llvm::DICompositeType &T, llvm::StringRef Alias);

  Unit &U;
  SourceMap &Sources;
  llvm::DenseMap<const llvm::DICompositeType *, Row> Rows;
};

} // namespace tracekit
