import ArgumentParser
import CachectlCore
import Larder

/// `budget`: shows or sets the limits of the store.
struct BudgetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "budget",
        abstract: "Show or set the limits of the store.",
        discussion: """
            The store keeps its limits, and they apply to every process that uses it. A lower limit displaces entries \
            immediately. Without options this command changes nothing. With options it creates the store if it does \
            not exist.
            """)

    @OptionGroup var options: StoreOptions

    @Option(
        help: ArgumentHelp("Limit of bytes on disk, at least 1 MiB, or 'unlimited'.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var bytes: ByteCount?

    @Option(
        help: ArgumentHelp("Limit of entries, or 'unlimited'.", valueName: "n"), transform: SizeArgument.parseCount)
    var entries: Int?

    @Option(
        help: ArgumentHelp(
            "Limit of the size of one body, or 'unlimited': half of what the bytes leave for entries.",
            valueName: "size"),
        transform: SizeArgument.parseLimit)
    var largestEntry: ByteCount?

    @Option(
        help: ArgumentHelp("Space to leave free on the disk, or 'none'.", valueName: "size"),
        transform: SizeArgument.parseFloor)
    var freeDiskFloor: ByteCount?

    func run() throws {
        let changes = bytes != nil || entries != nil || largestEntry != nil || freeDiskFloor != nil
        let limits = try options.withStore(changes ? .creating : .reading) { store in
            var limits = try store.budget()
            guard changes else { return limits }
            if let bytes { limits.bytes = bytes }
            if let entries { limits.entries = entries }
            if let largestEntry { limits.largestEntry = largestEntry }
            if let freeDiskFloor { limits.freeDiskFloor = freeDiskFloor }
            try store.setBudget(limits)
            return limits
        }
        try options.print(BudgetJSON(limits), orText: Self.table(limits))
    }

    private static func table(_ limits: Budget) -> String {
        var table = Table([.left, .left])
        table.add("bytes", Render.exactSize(limits.bytes))
        table.add("entries", limits.entries == .max ? "unlimited" : Render.count(limits.entries))
        let isDefault = limits.largestEntry == .unlimited && limits.bytes != .unlimited
        table.add(
            "largest entry",
            Render.exactSize(limits.effectiveLargestEntry) + (isDefault ? ", half of what entries may take" : ""))
        table.add("free disk floor", limits.freeDiskFloor == .zero ? "none" : Render.exactSize(limits.freeDiskFloor))
        return table.text
    }
}
