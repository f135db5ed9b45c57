// SourceMap.cpp: see SourceMap.h.
#include "SourceMap.h"

#include "Names.h"

using namespace llvm;

namespace tracekit {

Row SourceMap::source(StringRef Path, StringRef MD5) {
  auto [Entry, New] = SourceRows.try_emplace(Path, U.Sources.size());
  if (New)
    U.Sources.push_back({U.string(Path), U.string(MD5)});
  return Entry->second;
}

Row SourceMap::source(const DIFile *File) {
  if (!File)
    return TK_NONE;
  auto Checksum = File->getChecksum();
  bool HasMD5 = Checksum && Checksum->Kind == DIFile::CSK_MD5;
  return source(File->getFilename(), HasMD5 ? StringRef(Checksum->Value) : StringRef());
}

Row SourceMap::location(const DILocation *Location) {
  if (!Location)
    return TK_NONE;
  auto Known = LocationRows.find(Location);
  if (Known != LocationRows.end())
    return Known->second;
  Row InlinedAt = location(Location->getInlinedAt());
  Row Result = U.Locations.size();
  U.Locations.push_back({source(Location->getFile()), Location->getLine(), Location->getColumn(),
                         functionName(Location->getScope()->getSubprogram()), InlinedAt});
  LocationRows[Location] = Result;
  return Result;
}

Row SourceMap::declaration(const DIFile *File, unsigned Line, const DISubprogram *Function) {
  Row Result = U.Locations.size();
  U.Locations.push_back({source(File), Line, 0, functionName(Function), TK_NONE});
  return Result;
}

uint32_t SourceMap::functionName(const DISubprogram *Function) {
  if (!Function)
    return 0;
  auto [Entry, New] = FunctionNames.try_emplace(Function, 0);
  if (New)
    Entry->second = U.string(scopeName(*Function));
  return Entry->second;
}

} // namespace tracekit
