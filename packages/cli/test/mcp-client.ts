// Just enough of an MCP client of the session era to see what an endpoint serves.

/** What came back. */
export interface Answer {
  readonly status: number
  readonly message:
    | {
        readonly result?: Record<string, unknown>
        readonly error?: { readonly code: number; readonly message: string }
      }
    | undefined
  readonly session: string | undefined
}

/** Sends one message. */
export async function post(
  url: string,
  message: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const data = isStream ? [...text.matchAll(/^data: ?(\{.*)$/gm)].map((match) => match[1]).at(-1) : text
  return {
    status: response.status,
    message: data === undefined || data === '' ? undefined : (JSON.parse(data) as NonNullable<Answer['message']>),
    session: response.headers.get('mcp-session-id') ?? undefined,
  }
}

/** One session. */
export interface Session {
  request(method: string, params?: object): Promise<Answer>
}

/** Opens a session. */
export async function openSession(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Session> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const opened = await post(url, { id: 0, method: 'initialize', params }, headers)
  const inSession = { ...headers, 'mcp-session-id': opened.session ?? '', 'mcp-protocol-version': '2025-11-25' }
  await post(url, { method: 'notifications/initialized' }, inSession)
  let id = 0
  return { request: (method, params = {}) => post(url, { id: ++id, method, params }, inSession) }
}
