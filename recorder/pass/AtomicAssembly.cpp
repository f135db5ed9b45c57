// AtomicAssembly.cpp: see AtomicAssembly.h.
#include "AtomicAssembly.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Regex.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace tracekit {

namespace {

/// An operand that the text names by `Number`.
struct AsmOperand {
  Value *Address;
  uint64_t Bytes;
  bool Read, Written;
};

/// How the text of a statement names its operands and what it says of memory as a whole.
class AsmOperands {
public:
  AsmOperands(const CallBase &Call, StringRef Text) : Call(Call), Text(Text) {
    unsigned Number = 0, Argument = 0;
    for (const InlineAsm::ConstraintInfo &Each : cast<InlineAsm>(Call.getCalledOperand())->ParseConstraints()) {
      if (Each.Type == InlineAsm::isClobber) {
        Forgets |= is_contained(Each.Codes, "{memory}");
        continue;
      }
      if (Each.Type == InlineAsm::isLabel)
        continue;
      if (Each.hasArg())
        add(Each, Argument++, Number);
      ++Number;
    }
  }

  SmallVector<AsmOperand, 2> InMemory; ///< in memory, each once
  bool Forgets = false;                ///< the compiler forgets what it knows of memory

private:
  const CallBase &Call;
  StringRef Text;

  void add(const InlineAsm::ConstraintInfo &Each, unsigned Argument, unsigned Number) {
    Value *Address = Call.getArgOperand(Argument);
    bool Input = Each.Type == InlineAsm::isInput;
    if (Each.isIndirect) {
      Type *Of = Call.getParamElementType(Argument);
      uint64_t Bytes = Of && Of->isSized() ? Call.getModule()->getDataLayout().getTypeStoreSize(Of) : 0;
      merge({Address, Bytes, Input, !Input});
    } else if (Input && Address->getType()->isPointerTy()) {
      // A register that holds an address; if it is an output, too ("+r"), the text has the output's number.
      unsigned Named = Each.hasMatchingInput() || Each.Codes.empty() ? Number : tied(Each, Number);
      if (Regex("\\((\\$" + std::to_string(Named) + "|\\$\\{" + std::to_string(Named) + "(:[a-zA-Z])?\\})[,)]")
              .match(Text))
        merge({Address, 0, true, true});
    }
  }

  static unsigned tied(const InlineAsm::ConstraintInfo &Each, unsigned Number) {
    unsigned Output;
    return StringRef(Each.Codes.front()).getAsInteger(10, Output) ? Number : Output;
  }

  void merge(const AsmOperand &New) {
    for (AsmOperand &Known : InMemory)
      if (Known.Address->stripPointerCasts() == New.Address->stripPointerCasts()) {
        Known.Read |= New.Read;
        Known.Written |= New.Written;
        Known.Bytes = std::max(Known.Bytes, New.Bytes);
        return;
      }
    InMemory.push_back(New);
  }
};

bool mentions(StringRef Text, StringRef Word) {
  return Regex(("(^|[^a-z_])" + Word + "([^a-z]|$)").str(), Regex::IgnoreCase).match(Text);
}

AtomicAssembly fenceOfText(StringRef Text) {
  bool Both = mentions(Text, "mfence") || (mentions(Text, "lock") && mentions(Text, "[er]sp"));
  bool Loads = Both || mentions(Text, "lfence"), Stores = Both || mentions(Text, "sfence");
  if (!Loads && !Stores)
    return {};
  return {AtomicAssembly::FENCE, nullptr, 0, Loads, Stores};
}

} // namespace

AtomicAssembly atomicAssembly(const CallBase &Call) {
  if (!isa<CallInst>(Call) || !Call.isInlineAsm() || !Triple(Call.getModule()->getTargetTriple()).isX86())
    return {};
  StringRef Text = cast<InlineAsm>(Call.getCalledOperand())->getAsmString();
  AsmOperands Named(Call, Text);
  bool Locked = mentions(Text, "lock") || mentions(Text, "xchg[bwlq]?");
  if (Locked) {
    // A load of 16 bytes by `cmpxchg16b` says that it only reads.
    const AsmOperand *Updated = find_if(Named.InMemory, [](const AsmOperand &Each) { return Each.Written; });
    if (Updated == Named.InMemory.end())
      Updated = Named.InMemory.begin();
    if (Updated != Named.InMemory.end())
      return {AtomicAssembly::UPDATE, Updated->Address, Updated->Bytes, true, true};
  }
  // A load of several instructions computes something: what it reads is no flag.
  bool Single = Text.trim(" \t\n;").find_first_of(";\n") == StringRef::npos;
  if (Single && Named.Forgets && Named.InMemory.size() == 1 && StringRef(Text.ltrim()).starts_with_insensitive("mov")) {
    const AsmOperand &Only = Named.InMemory.front();
    if (Only.Read != Only.Written)
      return {Only.Written ? AtomicAssembly::STORE : AtomicAssembly::LOAD, Only.Address, Only.Bytes, Only.Read,
              Only.Written};
  }
  return fenceOfText(Text);
}

} // namespace tracekit
