extension ArraySlice {
    /// The sum of what `body` returns: for all elements in one call or, if that finds no room, for one half and then
    /// the other. A full disk may have the pages for a small transaction, and the next one can use the pages that it
    /// frees.
    package func inParts(_ body: (Self) throws -> Int) throws -> Int {
        do {
            return try body(self)
        } catch let error as LarderError where error.code == .noSpace && count > 1 {
            let middle = startIndex + count / 2
            return try self[..<middle].inParts(body) + self[middle...].inParts(body)
        }
    }
}
