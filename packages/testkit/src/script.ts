// The data that drives the scripted servers (`servers/scripted-stdio.mjs`, `servers/scripted-http.mjs`).

/** What a tool of a scripted server does when it is called. Numbers can be overridden by arguments of the same name. */
export type ScriptedAct =
  | { readonly kind: 'echo' | 'echo-name' | 'silent' | 'drop' | 'seen' }
  | { readonly kind: 'text' | 'tool-error'; readonly text: string }
  | {
      readonly kind: 'content'
      readonly content: readonly object[]
      readonly structuredContent?: unknown
      readonly isError?: boolean
    }
  | { readonly kind: 'rpc-error'; readonly code: number; readonly message: string; readonly data?: unknown }
  | { readonly kind: 'late'; readonly ms: number }
  | { readonly kind: 'big'; readonly bytes: number }
  /** Ends the process on the n-th call of this tool. */
  | { readonly kind: 'exit'; readonly code: number; readonly onCall: number }
  /** Asks the host and answers with the JSON of what came back. */
  | { readonly kind: 'ask'; readonly method: string; readonly params: object }
  | { readonly kind: 'progress'; readonly count: number; readonly everyMs: number }
  | { readonly kind: 'log'; readonly level: string; readonly count: number }
  /** Announces a changed list `count` times; `adds` lets the tool list really grow by one each time. */
  | {
      readonly kind: 'list-changed'
      readonly what: 'tools' | 'prompts' | 'resources'
      readonly count: number
      readonly everyMs: number
      readonly adds?: string
    }
  | { readonly kind: 'resource-updated'; readonly uri: string }
  | { readonly kind: 'noise'; readonly lines: readonly string[] }

/** A tool as it is listed (whatever else stands here is listed too), with what it does. */
export interface ScriptedTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  /** Default: echo. Not listed. */
  readonly does?: ScriptedAct
  readonly [key: string]: unknown
}

/** What both kinds of scripted server understand. Nothing given: a polite legacy server with the `workshop` tools. */
export interface ServerScript {
  /** Reported as `serverInfo.name`. Default `scripted`. */
  readonly name?: string
  /** Default `legacy`. */
  readonly era?: 'legacy' | 'modern' | 'both'
  /** What `server/discover` meets: an answer (in the legacy era: "method not found"), nothing, or the end of the process. */
  readonly discover?: 'answer' | 'silent' | 'exit'
  readonly initialize?: 'answer' | 'error' | 'silent'
  readonly initializeDelayMs?: number
  /** Legacy versions that it knows, the preferred one first. */
  readonly protocolVersions?: readonly string[]
  readonly capabilities?: object
  readonly instructions?: string
  readonly omitServerInfo?: boolean
  /**
   * `workshop` (default): one tool for each thing a server can do (echo, fail, refuse, silent, late, big, crash, drop, elicit, sample, roots, progress, log,
   * change, touch, noise, structured, mismatch, image, seen). A number: `echo` and generated ones.
   */
  readonly tools?: 'workshop' | 'hostile-names' | 'schema-zoo' | number | readonly ScriptedTool[]
  /** What `tools/list` meets. `same-cursor` and `endless` never come to an end by themselves. */
  readonly listing?: 'answer' | 'silent' | 'error' | 'same-cursor' | 'endless'
  readonly listDelayMs?: number
  /** Tools on a page; 0 (default): all on one. */
  readonly pageItems?: number
  /** Caching hint of modern answers. Default 0. */
  readonly ttlMs?: number
  /** Ends the process instead of answering the n-th `tools/call` of any tool. */
  readonly exitOnCall?: number
}

/** What the stdio server understands besides. */
export interface StdioScript extends ServerScript {
  /** A file that gets one JSON line for each start and each grandchild: `{event, pid}`. */
  readonly log?: string
  /** Lines written to stderr at the start. */
  readonly stderr?: readonly string[]
  /** A line written to stderr before an `exit`. */
  readonly lastWords?: string
  readonly exitAtStart?: { readonly code: number }
  /** Before anything is read or printed. */
  readonly startDelayMs?: number
  /** Lines printed to stdout before the first message. */
  readonly banner?: readonly string[]
  /** End of each message. Default `\n`. */
  readonly lineEnd?: '\n' | '\r\n'
  readonly stubborn?: {
    readonly ignoreTerm?: boolean
    readonly ignoreStdinEnd?: boolean
    /** Children that ignore SIGTERM and SIGHUP. */
    readonly grandchildren?: number
    /** The grandchildren leave the process group. */
    readonly ownSession?: boolean
  }
}

/** How a server forgets its sessions answers those who still use them. */
export type ForgottenAnswer = '404-json' | '404-html' | '404-empty' | '400-no-session' | '200-not-initialized'

/** What the HTTP server understands besides. */
export interface HttpScript extends ServerScript {
  /** `required` (default): an id is given out at `initialize` and demanded from then on. */
  readonly sessions?: 'required' | 'none'
  /** After so many `tools/call` of a session it is forgotten. */
  readonly forgetAfterCalls?: number
  /** Taken in turn. Default `404-json` alone. */
  readonly forgottenAnswers?: readonly ForgottenAnswer[]
  /** How a POST is answered. `sse-resume`: the stream gets an event id and ends before the answer, which waits for `Last-Event-ID`. Default `json`. */
  readonly answers?: 'json' | 'sse' | 'sse-resume'
  /** What `GET` meets. Default `serve`: the server's own stream. */
  readonly getStream?: 'serve' | '405' | '404'
  /** Bearer token that is demanded, with a `WWW-Authenticate` challenge for those without. */
  readonly token?: string
  /** These requests are answered with a bare HTTP status, the first `times` of them (default: all). */
  readonly failures?: readonly {
    readonly method: string
    readonly status: number
    readonly times?: number
    readonly headers?: Readonly<Record<string, string>>
  }[]
}
