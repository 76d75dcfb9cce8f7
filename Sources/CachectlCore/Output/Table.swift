import Larder

/// Text in aligned columns. What a terminal would obey rather than show is escaped as in keys: cells have tags and
/// fields that came from outside.
package struct Table {
    /// The alignment of a column.
    package enum Alignment { case left, right }

    private let alignments: [Alignment]
    private var rows: [[String]] = []
    private let indent: String

    package init(_ alignments: [Alignment], header: [String]? = nil, indent: String = "") {
        self.alignments = alignments
        self.indent = indent
        if let header { rows.append(header) }
    }

    /// Adds a row; missing cells are empty.
    package mutating func add(_ cells: String...) { rows.append(cells.map(Self.shown)) }

    /// The table, one line per row.
    package var text: String {
        let widths = alignments.indices.map { column in
            rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        return rows.map { Self.line($0, widths, alignments, indent: indent) }.joined()
    }

    /// One row in columns of fixed width, for lists that are printed row by row. Spaces at the end are removed.
    package static func line(_ cells: [String], _ widths: [Int], _ alignments: [Alignment], indent: String = "")
        -> String
    {
        var line = indent
        for (column, cell) in cells.lazy.map(shown).enumerated() where column < widths.count {
            if column > 0 { line += "  " }
            let padding = String(repeating: " ", count: max(0, widths[column] - cell.count))
            line += alignments[column] == .right ? padding + cell : cell + padding
        }
        while line.last == " " { line.removeLast() }
        return line + "\n"
    }

    private static func shown(_ cell: String) -> String {
        cell.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } ? cell : Key(cell).text
    }
}
