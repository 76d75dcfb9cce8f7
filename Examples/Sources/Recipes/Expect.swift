import Foundation

/// Ends the program with status 1, and says where, if `condition` is false: the programs of the cookbook test
/// themselves.
public func expect(
    _ condition: Bool, _ problem: String = "not what the recipe promises", file: StaticString = #fileID,
    line: UInt = #line
) {
    if condition { return }
    FileHandle.standardError.write(Data("\(file):\(line): \(problem)\n".utf8))
    exit(1)
}
