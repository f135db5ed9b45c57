// Iterators.cpp: see Iterators.h.
#include "Iterators.h"

#include "Compat.h"
#include "Lending.h"
#include "SourceTypes.h"
#include "Temporaries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace tracekit {

/// The name of the operator of C++ that a call calls: `operator++`; "" if it calls none.
static std::string operatorOf(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  ItaniumPartialDemangler Name;
  if (!Callee || Call.arg_empty() || Name.partialDemangle(Callee->getName().str().c_str()) || !Name.isFunction())
    return "";
  char *Text = Name.getFunctionBaseName(nullptr, nullptr);
  std::string Base = Text ? Text : "";
  std::free(Text);
  return startsWith(Base, "operator") ? Base : "";
}

/// Whether clang made a comparison with 0 of a condition that compares nothing (`for (i = n; i; i--)`): it stands where
/// the variable does (C++) or the `for` (C), and that of an operator in the source where the operator does.
static bool isOfTruth(const ICmpInst &Compare) {
  auto *Value = dyn_cast<Instruction>(Compare.getOperand(0));
  auto StandsWith = [&](const Instruction &I) { return I.getDebugLoc() == Compare.getDebugLoc(); };
  return Compare.isEquality() && Value && PatternMatch::match(Compare.getOperand(1), PatternMatch::m_Zero()) &&
         (StandsWith(*Value) || any_of(Compare.users(), [&](const User *U) {
            return isa<BranchInst>(U) && StandsWith(*cast<Instruction>(U));
          }));
}

std::optional<Comparison> comparisonOf(Value *Condition) {
  if (auto *Compare = dyn_cast<ICmpInst>(Condition)) {
    if (isOfTruth(*Compare))
      return std::nullopt;
    return Comparison{Compare->getOperand(0), Compare->getOperand(1), Compare->isEquality(), false};
  }
  Value *Negated;
  if (PatternMatch::match(Condition, PatternMatch::m_Not(PatternMatch::m_Value(Negated)))) // C++20 has no operator!=
    Condition = Negated;
  auto *Call = dyn_cast<CallBase>(Condition);
  std::string Operator = Call && Call->arg_size() == 2 ? operatorOf(*Call) : "";
  bool IsEquality = Operator == "operator!=" || Operator == "operator==";
  bool IsOrder =
      StringSwitch<bool>(Operator).Cases("operator<", "operator<=", "operator>", "operator>=", true).Default(false);
  if (!IsEquality && !IsOrder)
    return std::nullopt;
  return Comparison{Call->getArgOperand(0), Call->getArgOperand(1), IsEquality, true};
}

bool isContiguousIterator(const AllocaInst &Variable) {
  const DILocalVariable *Declared = variableAt(const_cast<AllocaInst *>(&Variable));
  auto *Class = Declared ? dyn_cast_or_null<DICompositeType>(plainType(Declared->getType())) : nullptr;
  StringRef Name = Class ? Class->getName() : "";
  Name = Name.take_until([](char C) { return C == '<'; });
  return Name == "__normal_iterator" || Name == "__wrap_iter";
}

std::optional<IteratorStep> stepOf(const CallBase &Call) {
  std::string Operator = operatorOf(Call);
  if (Operator == "operator++" || Operator == "operator--") // it++ has another argument, which says nothing
    return IteratorStep{nullptr, Operator == "operator++"};
  if ((Operator == "operator+=" || Operator == "operator-=") && Call.arg_size() == 2)
    return IteratorStep{Call.getArgOperand(1), Operator == "operator+="};
  return std::nullopt;
}

bool isChangedOnlyBy(const CallBase &Step, AllocaInst &Variable, function_ref<bool(const BasicBlock *)> IsInLoop) {
  auto MayDo = [&](Instruction &Address, const Use &U) {
    auto *By = cast<Instruction>(U.getUser());
    bool IsOutside = !IsInLoop(By->getParent());
    if (By == &Step || isa<LoadInst, GetElementPtrInst, BitCastInst>(By))
      return true;
    if (auto *Store = dyn_cast<StoreInst>(By))
      return IsOutside && Store->getValueOperand() != &Address;
    if (auto *Built = dyn_cast<IntrinsicInst>(By); Built && Built->isLifetimeStartOrEnd())
      return true;
    auto *Call = dyn_cast<CallBase>(By);
    if (!Call || !Call->isArgOperand(&U))
      return false;
    Loan Of = loanOf(*Call, Call->getArgOperandNo(&U));
    return !Of.IsKept && (IsOutside || !Of.IsStored);
  };
  SmallVector<Instruction *, 8> Open = {&Variable};
  while (!Open.empty()) {
    Instruction &Address = *Open.pop_back_val();
    for (const Use &U : Address.uses()) {
      if (!MayDo(Address, U))
        return false;
      if (auto *Part = dyn_cast<Instruction>(U.getUser()); isa<GetElementPtrInst, BitCastInst>(Part))
        Open.push_back(Part);
    }
  }
  return true;
}

} // namespace tracekit
