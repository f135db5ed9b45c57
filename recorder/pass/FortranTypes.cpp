// FortranTypes.cpp: see FortranTypes.h.
#include "FortranTypes.h"

#include "Compat.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"

using namespace llvm;

namespace tracekit {

namespace {

// Elements of the constants.
enum DerivedType { TypeName = 1, TypeComponents = 6 };
enum Component { Name = 0, Genre = 1, Category = 2, Kind = 3, Rank = 4, Offset = 6, Length = 7, Derived = 8 };
enum { GenreData = 1, GenrePointer = 2 };
enum { CategoryComplex = 2, CategoryCharacter = 3, CategoryDerived = 5, Categories = 6 };
constexpr StringLiteral CategoryNames[Categories] = {"integer", "real", "complex", "character", "logical", "type"};

/// The constant that a descriptor, whose first element is an address, describes.
const GlobalVariable *described(const Constant *Descriptor) {
  const Constant *Address = Descriptor ? Descriptor->getAggregateElement(0u) : nullptr;
  return Address ? dyn_cast<GlobalVariable>(Address->stripPointerCasts()) : nullptr;
}

StringRef text(const Constant *Descriptor) {
  const GlobalVariable *G = described(Descriptor);
  auto *Text = G && G->hasInitializer() ? dyn_cast<ConstantDataSequential>(G->getInitializer()) : nullptr;
  return Text && Text->isString() ? Text->getAsString() : "";
}

uint64_t number(const Constant *Of, unsigned Element) {
  auto *Found = dyn_cast_or_null<ConstantInt>(Of->getAggregateElement(Element));
  return Found ? Found->getZExtValue() : 0;
}

class Reader {
public:
  explicit Reader(const Module &M) : M(M), Build(const_cast<Module &>(M), /*AllowUnresolved=*/false) {}

  /// The type that a `derivedtype` describes; null if this is none, or its objects have no LLVM type of their own.
  const DICompositeType *read(const GlobalVariable &G) {
    StructType *Objects = objectsOf(G);
    if (!Objects || !G.hasInitializer())
      return nullptr;
    auto [Entry, New] = Known.try_emplace(Objects->getName());
    if (!New)
      return Entry->second;
    const GlobalVariable *Table = described(G.getInitializer()->getAggregateElement(TypeComponents));
    if (!Table || !Table->hasInitializer())
      return nullptr;
    const StructLayout &Layout = *M.getDataLayout().getStructLayout(Objects);
    SmallVector<Metadata *, 8> Members;
    for (unsigned Row = 0; const Constant *Each = Table->getInitializer()->getAggregateElement(Row); ++Row)
      if (const DIType *Made = component(*Each, *Objects, Layout))
        Members.push_back(const_cast<DIType *>(Made));
    StringRef Called = text(G.getInitializer()->getAggregateElement(TypeName));
    const DICompositeType *Made =
        Build.createStructType(nullptr, Called, nullptr, 0, 8 * uint64_t(Layout.getSizeInBytes()), 0, DINode::FlagZero,
                               nullptr, Build.getOrCreateArray(Members));
    return Known[Objects->getName()] = Made;
  }

  StringMap<const DICompositeType *> Known;

private:
  /// _QMmE.dt.node describes objects of %_QMmTnode.
  StructType *objectsOf(const GlobalVariable &G) const {
    auto [Scope, Called] = G.getName().split("E.dt.");
    if (!startsWith(Scope, "_Q") || Called.empty())
      return nullptr;
    return StructType::getTypeByName(M.getContext(), (Scope + "T" + Called).str());
  }

  const DIType *component(const Constant &Row, const StructType &Objects, const StructLayout &Layout) {
    uint64_t At = number(&Row, Offset), Which = number(&Row, Category);
    if (At >= Layout.getSizeInBytes() || Which >= Categories)
      return nullptr;
    unsigned Element = Layout.getElementContainingOffset(At);
    uint64_t Bits = M.getDataLayout().getTypeSizeInBits(Objects.getElementType(Element)).getFixedValue();
    return Build.createMemberType(nullptr, text(Row.getAggregateElement(Name)), nullptr, 0, Bits, 0, 8 * At,
                                  DINode::FlagZero, typeOf(Row, Which, Bits));
  }

  /// Data, an array of such, or the descriptor of a pointer or of what can be allocated.
  DIType *typeOf(const Constant &Row, uint64_t Which, uint64_t Bits) {
    uint64_t HowWide = number(&Row, Kind);
    std::string Called = CategoryNames[Which].str() + "(" + std::to_string(HowWide) + ")";
    DIType *Element = nullptr;
    if (Which == CategoryDerived) {
      const GlobalVariable *Of = described(Row.getAggregateElement(Derived));
      Called = "type(" +
               (Of && Of->hasInitializer() ? text(Of->getInitializer()->getAggregateElement(TypeName)).str() : "*") +
               ")";
      if (Of && number(&Row, Genre) == GenreData)
        Element = const_cast<DICompositeType *>(read(*Of));
    } else {
      HowWide *= Which == CategoryComplex ? 16 : 8;
      if (Which == CategoryCharacter) {
        const Constant *Long = Row.getAggregateElement(Length);
        uint64_t Characters = Long ? number(Long, 2) : 0;
        Called = "character(" + std::to_string(Characters) + ")";
        HowWide *= Characters;
      }
    }
    if (number(&Row, Genre) != GenreData)
      return basic(Called + (number(&Row, Genre) == GenrePointer ? ", pointer" : ", allocatable"), Bits);
    if (!Element)
      Element = basic(Called, Which == CategoryDerived ? Bits : HowWide);
    uint64_t Wide = Element->getSizeInBits();
    if (!number(&Row, Rank) || !Wide || Bits == Wide)
      return Element;
    Metadata *Range[] = {Build.getOrCreateSubrange(1, int64_t(Bits / Wide))};
    return Build.createArrayType(Bits, 0, Element, Build.getOrCreateArray(Range));
  }

  DIType *basic(const std::string &Called, uint64_t Bits) {
    return Build.createBasicType(Called, Bits, dwarf::DW_ATE_unsigned);
  }

  const Module &M;
  DIBuilder Build;
};

} // namespace

StringMap<const DICompositeType *> fortranTypes(const Module &M) {
  Reader Reads(M);
  for (const GlobalVariable &G : M.globals())
    if (startsWith(G.getName(), "_Q"))
      Reads.read(G);
  return Reads.Known;
}

} // namespace tracekit
