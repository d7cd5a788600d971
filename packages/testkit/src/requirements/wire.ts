import type { Requirement } from './requirement.ts'

/** The core of the wire: processes, framing, JSON-RPC, eras, listings. */
export const wire: readonly Requirement[] = [
  // Framing and envelopes.
  {
    id: 'wire.001',
    text: 'Lines come out whole and in order, however their bytes are cut into chunks',
    milestone: 1,
    source: 'MCP, Transports: stdio',
  },
  {
    id: 'wire.002',
    text: 'A line over the cap is skipped in bounded memory, and its first and last bytes are kept',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.003',
    text: 'An answer passed through as bytes is exactly one well-formed JSON-RPC answer with the id and the result that JSON.parse sees',
    milestone: 1,
    source: 'A33',
  },
  {
    id: 'wire.004',
    text: 'Duplicate members, escaped keys, broken UTF-8 and depth beyond 1,000 are never passed through as bytes',
    milestone: 1,
    source: 'A33',
  },
  {
    id: 'wire.005',
    text: 'An answer over the cap fails its call and nothing else, whether its id comes first or last',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.006',
    text: 'A message of millions of brackets fails its call before it fills the memory',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.007',
    text: 'Messages that end with CRLF, and a last message without a line end, are read',
    milestone: 1,
    source: 'MCP, Transports: stdio',
  },
  {
    id: 'wire.008',
    text: 'What a server prints beside its messages is counted, told once and harmless, in the middle of a call too',
    milestone: 1,
    source: 'MCP, Transports: stdio',
  },
  // Eras and start.
  {
    id: 'wire.010',
    text: 'A legacy stdio server is found on the process that was started, which is asked once and greeted once',
    milestone: 1,
    source: 'MCP 2026-07-28, Versioning',
  },
  {
    id: 'wire.011',
    text: 'A modern stdio server is found by discovery, and every request carries version, client and capabilities',
    milestone: 1,
    source: 'MCP 2026-07-28, Base Protocol: _meta',
  },
  {
    id: 'wire.012',
    text: 'A server that ignores the question for its era is connected after a moment, on one launch',
    milestone: 1,
  },
  {
    id: 'wire.013',
    text: 'A server that dies of the question is started once more and not asked; any other death is not followed by a launch',
    milestone: 1,
  },
  {
    id: 'wire.014',
    text: 'A modern server that is slow to answer is connected on one launch, although `initialize` was written too',
    milestone: 1,
  },
  {
    id: 'wire.015',
    text: 'With a remembered verdict nothing is asked, and a server that has changed its era since is connected all the same',
    milestone: 1,
  },
  {
    id: 'wire.016',
    text: 'A start has one budget for process, question and handshake; when it is used up nothing is left running',
    milestone: 1,
  },
  { id: 'wire.017', text: 'Every failed start quotes the last line on stderr', milestone: 1 },
  {
    id: 'wire.018',
    text: 'An aborted start ends at once with `cancelled` and leaves nothing running, whenever the abort comes',
    milestone: 1,
  },
  {
    id: 'wire.019',
    text: 'A server that refuses the newest version is offered older ones, and an unknown version in its answer is taken',
    milestone: 1,
    source: 'MCP 2025-11-25, Lifecycle: Version Negotiation',
  },
  {
    id: 'wire.020',
    text: 'A server that says nothing about itself (no serverInfo, no capabilities) is connected',
    milestone: 1,
  },
  // Calls.
  {
    id: 'wire.030',
    text: 'An abort settles the call at once with `cancelled`, sends one notification, and the server goes on; a late answer is dropped',
    milestone: 1,
    source: 'MCP 2025-11-25, Cancellation',
  },
  {
    id: 'wire.031',
    text: '`initialize` is never cancelled, and neither is a call that has been answered',
    milestone: 1,
    source: 'MCP 2025-11-25, Cancellation: Behavior Requirements',
  },
  {
    id: 'wire.032',
    text: 'The idle limit is put off by progress and the total one is not',
    milestone: 1,
    source: 'MCP 2025-11-25, Lifecycle: Timeouts',
  },
  {
    id: 'wire.033',
    text: 'The idle clock and the total limit stand still while a question of the server for the call is being answered',
    milestone: 1,
  },
  {
    id: 'wire.034',
    text: 'Every progress notification is delivered, in order, also those right before the answer; none after it',
    milestone: 1,
    source: 'MCP 2025-11-25, Progress',
  },
  {
    id: 'wire.035',
    text: 'Answers find their calls by id alone: out of order, as strings, twice, or to calls that nobody made',
    milestone: 1,
    source: 'A12',
  },
  {
    id: 'wire.036',
    text: 'A failed call says whether its bytes had left; a call that has not left is taken back and never reaches the server',
    milestone: 1,
  },
  {
    id: 'wire.037',
    text: 'When the connection ends every call in flight and every later one fails at once with `closed`',
    milestone: 1,
  },
  {
    id: 'wire.038',
    text: 'A progress token or metadata of a foreign caller cannot reach a call of ours',
    milestone: 1,
    source: 'A55',
  },
  {
    id: 'wire.039',
    text: 'A server error reaches the caller with its code, message and data; a malformed answer fails its call alone',
    milestone: 1,
  },
  // What the server asks.
  {
    id: 'wire.040',
    text: 'What a server asks is answered by the handlers of the call it belongs to, else by the session’s; without a handler by −32601',
    milestone: 1,
    source: 'MCP 2025-11-25, Base Protocol',
  },
  {
    id: 'wire.041',
    text: 'Pings are answered, unknown methods refused, and a question that the server takes back is not answered',
    milestone: 1,
    source: 'MCP 2025-11-25, Ping',
  },
  {
    id: 'wire.042',
    text: 'At most 64 questions are answered at once, and a server that asks without reading answers loses the connection',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.043',
    text: 'A modern answer that needs input is asked again with the answers, its state unchanged, a new id and the capabilities of this call',
    milestone: 1,
    source: 'MCP 2026-07-28, Multi Round-Trip Requests',
  },
  {
    id: 'wire.044',
    text: 'Limits hold for all rounds together and stand still while a question is being answered; cancelling holds all the time',
    milestone: 1,
  },
  {
    id: 'wire.045',
    text: 'Notifications reach the session, and the call or subscription that they belong to',
    milestone: 1,
  },
  {
    id: 'wire.046',
    text: 'A subscription hears what it asked for, in both eras, until it is closed',
    milestone: 1,
    source: 'MCP 2026-07-28, Subscriptions',
  },
  // Listings.
  {
    id: 'wire.050',
    text: 'A listing of any kind brings all pages; an empty cursor is a cursor, and only its absence ends the list',
    milestone: 1,
    source: 'MCP 2025-11-25, Pagination',
  },
  {
    id: 'wire.051',
    text: 'Pages, items, cursor length, repeated cursors and time each have a limit with a name of its own',
    milestone: 1,
    source: 'A47',
  },
  { id: 'wire.052', text: 'One bad item never hides the others: it is rejected by name with a reason', milestone: 1 },
  {
    id: 'wire.053',
    text: 'A modern listing is as fresh as its shortest page and as private as its most private one',
    milestone: 1,
    source: 'MCP 2026-07-28, Caching',
  },
  // Processes.
  {
    id: 'wire.060',
    text: 'Closing ends input, then tells, then kills the whole group: neither a stubborn server nor its grandchildren survive',
    milestone: 1,
    source: 'MCP, Lifecycle: Shutdown',
  },
  {
    id: 'wire.061',
    text: 'A grandchild that has moved to a session of its own is ended with its server',
    milestone: 1,
  },
  {
    id: 'wire.062',
    text: 'When the host process exits without closing, nothing that it started is left',
    milestone: 1,
  },
  {
    id: 'wire.063',
    text: 'After the host was killed the next start ends exactly what it left, and tells which',
    milestone: 1,
  },
  {
    id: 'wire.064',
    text: 'Reaping leaves alone the children of a living host, a process number given away since, links, foreign files and broken ones',
    milestone: 1,
  },
  {
    id: 'wire.065',
    text: 'stderr is always read and the last 16 KiB kept, without control characters',
    milestone: 1,
    source: 'A45',
  },
  {
    id: 'wire.066',
    text: 'A command that cannot be started says why: not found and where it was looked for, not executable, or its folder missing',
    milestone: 1,
  },
  {
    id: 'wire.067',
    text: 'A crash tells how the process ended, and what it left in its group is ended too',
    milestone: 1,
  },
  {
    id: 'wire.068',
    text: 'A helper command is bounded in time and output, and never leaves anything running',
    milestone: 1,
  },
  {
    id: 'wire.069',
    text: 'On Windows a command file is run by its full name, and arguments that the command interpreter would read again are refused',
    milestone: 1,
    source: 'A09',
  },
  {
    id: 'wire.070',
    text: 'How long a process may take to end by itself before SIGTERM can be set; it is 2 s otherwise',
    milestone: 1,
  },
  // The package.
  {
    id: 'wire.080',
    text: 'Servers that others wrote work in full: everything, filesystem, memory, SDK v1 and SDK v2 in both eras',
    milestone: 1,
  },
  {
    id: 'wire.081',
    text: 'Loading the package loads neither HTTP nor child processes nor cryptography',
    milestone: 1,
  },
  {
    id: 'wire.082',
    text: 'A whole session runs on a simulated platform: its clock, its processes, its files',
    milestone: 1,
  },
  // Security rules that this room keeps.
  {
    id: 'security.001',
    text: 'No shell ever sees a command: arguments arrive byte for byte, whatever is in them',
    milestone: 1,
    source: 'A09',
  },
  {
    id: 'security.002',
    text: 'A child sees the short platform list, the names its entry gives and its literal values, and nothing else of its host’s environment',
    milestone: 1,
    source: 'A17',
  },
  { id: 'security.003', text: 'A child inherits no descriptor beyond 0 to 2', milestone: 1, source: 'A17' },
  {
    id: 'security.004',
    text: 'What one entry gives to its server never reaches another one',
    milestone: 1,
    source: 'A17',
  },
  {
    id: 'security.005',
    text: 'No error, outcome or lease file holds a value of the environment or an argument of a call',
    milestone: 1,
    source: 'A49',
  },
  {
    id: 'security.006',
    text: 'Special keys in results, handlers and methods are data: nothing is called and no prototype changes',
    milestone: 1,
    source: 'A36',
  },
  {
    id: 'security.007',
    text: 'Text of a server in errors and noise carries no escape sequence or control character',
    milestone: 1,
    source: 'A45',
  },
]
