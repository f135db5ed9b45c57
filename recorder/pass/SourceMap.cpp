// SourceMap.cpp: see SourceMap.h.
#include "SourceMap.h"

#include "FortranText.h"
#include "Names.h"

#include "llvm/Support/MD5.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace tracekit {

Row SourceMap::source(StringRef Path, StringRef MD5) {
  auto [Entry, New] = SourceRows.try_emplace(Path, U.Sources.size());
  if (New)
    U.Sources.push_back({U.string(Path), U.string(MD5)});
  return Entry->second;
}

/// The MD5 of a source of Fortran, which flang leaves out; empty of others, and if the file cannot be read.
static std::string checksumOfFortran(const DIFile &Of) {
  SmallString<256> Path;
  if (!sys::path::is_absolute(Of.getFilename()))
    Path = Of.getDirectory();
  sys::path::append(Path, Of.getFilename());
  if (fortranForm(Path) == FortranForm::None)
    return "";
  auto Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return "";
  MD5 Hash;
  Hash.update((*Buffer)->getBuffer());
  MD5::MD5Result Result;
  Hash.final(Result);
  return Result.digest().str().str();
}

Row SourceMap::source(const DIFile *File) {
  if (!File)
    return TK_NONE;
  auto Checksum = File->getChecksum();
  bool HasMD5 = Checksum && Checksum->Kind == DIFile::CSK_MD5;
  return source(path(*File), HasMD5 ? Checksum->Value.str() : checksumOfFortran(*File));
}

SmallString<256> SourceMap::path(const DIFile &File) const {
  // clang splits an absolute path at the part that it shares with the compilation folder; of a file that was given
  // relative to that folder, the whole folder is the directory.
  StringRef Folder = File.getDirectory();
  bool Split = Folder != U.Folder && sys::path::is_absolute(Folder) && !sys::path::is_absolute(File.getFilename());
  SmallString<256> Path(Split ? Folder : StringRef());
  sys::path::append(Path, File.getFilename());
  return Path;
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
