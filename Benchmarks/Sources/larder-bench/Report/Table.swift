/// The table of targets: as text for a terminal, as Markdown for the report.
enum TargetTable {
    private static let header = ["", "measure", "against", "target", "reached", "", "figures"]

    /// Columns padded with blanks.
    static func text(_ rows: [TargetRow]) -> String {
        let cells = [header] + rows.map(self.cells)
        let widths = header.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        return cells.map { line in
            var text = ""
            for (column, cell) in line.enumerated() {
                text += cell
                if column + 1 < line.count { text += String(repeating: " ", count: widths[column] - cell.count + 2) }
            }
            return text
        }.joined(separator: "\n")
    }

    /// One row in words.
    static func line(_ row: TargetRow) -> String {
        cells(row).filter { !$0.isEmpty }.joined(separator: "  ")
    }

    /// A table in GitHub's Markdown.
    static func markdown(_ rows: [TargetRow]) -> String {
        let lines =
            [header, ["---", "---", "---", "---:", "---:", "---", "---"]]
            + rows.map { row in
                var cells = self.cells(row)
                if row.isMet != true { cells[5] = "**\(cells[5])**" }
                return cells
            }
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    /// `12 of 34 rows met`.
    static func summary(_ rows: [TargetRow]) -> String {
        let met = rows.count { $0.isMet == true }
        let open = rows.count { $0.isMet == nil }
        return "\(met) of \(rows.count) rows met" + (open == 0 ? "" : ", \(open) not measured")
    }

    private static func cells(_ row: TargetRow) -> [String] {
        let unit = row.unit == "x" ? " x" : row.unit
        let reached = row.reached.map { digits($0, row) + unit }
        let sign = row.sense == .atLeast ? ">=" : "<="
        let target = row.unit.isEmpty ? "" : "\(sign) \(trimmed(row.target))\(unit)"
        let verdict =
            switch row.isMet {
            case true?: "met"
            case false?: "not met"
            case nil: "not measured"
            }
        return [row.id, row.measure, row.against, target, reached ?? "", verdict, row.detail]
    }

    /// Three significant digits; whole bytes; the differences of P11 with four digits after the point.
    private static func digits(_ value: Double, _ row: TargetRow) -> String {
        if row.unit == " off" { return Render.decimal(value, 4) }
        return Render.decimal(value, value >= 100 || row.unit == " B" ? 0 : value >= 10 ? 1 : 2)
    }

    private static func trimmed(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}
