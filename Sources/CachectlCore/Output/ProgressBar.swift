/// A line on standard error that shows the progress of a command, if standard error is a terminal.
package final class ProgressBar {
    private let title: String
    private let isShown: Bool
    private let clock = ContinuousClock()
    private var drawn: ContinuousClock.Instant?
    private var lastWidth = 0

    /// - Parameter isQuiet: never shows anything; for `--json`.
    package init(_ title: String, isQuiet: Bool) {
        self.title = title
        isShown = !isQuiet && isatty(STDERR_FILENO) == 1
    }

    deinit { finish() }

    /// Draws at most ten times a second, and always when the work is complete.
    package func update(_ done: Int64, of total: Int64, _ detail: @autoclosure () -> String = "") {
        guard isShown else { return }
        let now = clock.now
        if let drawn, now - drawn < .milliseconds(100), done < total { return }
        drawn = now
        draw(Self.line(title, done, total, detail(), width: Self.terminalWidth))
    }

    /// Clears the line.
    package func finish() {
        guard isShown, lastWidth > 0 else { return }
        Output.complain("\r" + String(repeating: " ", count: lastWidth) + "\r")
        lastWidth = 0
    }

    /// `title [######------]  50 %  detail`, cut to `width`.
    package static func line(_ title: String, _ done: Int64, _ total: Int64, _ detail: String, width: Int) -> String {
        let share = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
        let cells = 24
        let full = Int(share * Double(cells))
        let bar = String(repeating: "#", count: full) + String(repeating: "-", count: cells - full)
        let percent = String(Int(share * 100))
        let padded = String(repeating: " ", count: 3 - percent.count) + percent
        return String("\(title) [\(bar)] \(padded) %  \(detail)".prefix(max(20, width - 1)))
    }

    private func draw(_ line: String) {
        let padding = String(repeating: " ", count: max(0, lastWidth - line.count))
        lastWidth = line.count
        Output.complain("\r" + line + padding)
    }

    private static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
