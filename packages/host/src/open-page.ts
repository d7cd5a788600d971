// Opens a page in the browser of the person who sits here. Part of the composition root: what it starts is no server, and outlives the host.
import { nodePlatform, type Platform } from './protocol/index.ts'

/** What became of a page. */
export type OpenedPage =
  | { readonly kind: 'opened' }
  /** `because`, for a person; the address is in no message. */
  | { readonly kind: 'not-opened'; readonly because: string }

type PagePlatform = Pick<Platform, 'env' | 'os' | 'spawn' | 'setTimer' | 'clearTimer'>

/** Openers hand over to a browser at once, or become it; who still runs after so many milliseconds has not failed. */
const OPENER_WAIT_MS = 3_000

/** What a browser and what leads to it need to find the screen of the person, and nothing that a program may keep secrets in. */
const UNIX_NAMES =
  /^(?:HOME|USER|LOGNAME|PATH|SHELL|LANG|LC_\w+|TMPDIR|TZ|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|DESKTOP_SESSION|KDE_FULL_SESSION|KDE_SESSION_VERSION|BROWSER|VSCODE_IPC_HOOK_CLI|WSL_\w+|__CF_USER_TEXT_ENCODING)$/
const WINDOWS_NAMES =
  /^(?:ALLUSERSPROFILE|APPDATA|COMPUTERNAME|COMSPEC|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATH|PATHEXT|PROGRAMDATA|PROGRAMFILES(?:\(X86\))?|PUBLIC|SYSTEMDRIVE|SYSTEMROOT|TEMP|TMP|USERDOMAIN|USERNAME|USERPROFILE|WINDIR)$/i

/**
 * Shows the page in the browser of the person, if there is one to be reached: with the program that the variable `BROWSER` names, else with what the system
 * has for it. No shell is involved, and the browser is not ended with this process.
 *
 * ```ts no-run
 * import { openPage } from '@convoke/host'
 *
 * const page = await openPage('https://mail.example/authorize?…')
 * if (page.kind === 'not-opened') console.error(`Open it yourself: ${page.because}`)
 * ```
 * @param url Begins with https://, or with http:// and this machine; nothing else is opened.
 * @returns after 3 s at most. Never rejects.
 */
export async function openPage(url: string, platform: PagePlatform = nodePlatform): Promise<OpenedPage> {
  const plan = planPage(url, platform)
  return plan.kind === 'run' ? run(plan, platform) : plan
}

type PagePlan =
  | { readonly kind: 'run'; readonly command: string; readonly args: readonly string[] }
  | (OpenedPage & { readonly kind: 'not-opened' })

/** Decides how; the first rule that fits counts. Pure. */
function planPage(url: string, { env, os }: Pick<Platform, 'env' | 'os'>): PagePlan {
  const address = addressOf(url)
  if (address === undefined)
    return { kind: 'not-opened', because: 'only https addresses, and http addresses of this machine, are opened' }
  const browser = env['BROWSER']?.trim() ?? ''
  if (browser !== '') return { kind: 'run', command: browser, args: [address] }
  const hasScreen = isSet(env['DISPLAY']) || isSet(env['WAYLAND_DISPLAY'])
  if (isSet(env['SSH_CONNECTION']) && !hasScreen)
    return { kind: 'not-opened', because: 'this is a session on a remote machine' }
  if (os === 'darwin') return { kind: 'run', command: 'open', args: [address] }
  if (os === 'win32') return { kind: 'run', command: 'rundll32', args: ['url.dll,FileProtocolHandler', address] }
  if (!hasScreen) return { kind: 'not-opened', because: 'there is no desktop here' }
  return { kind: 'run', command: 'xdg-open', args: [address] }
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}

/** As a browser reads it: without spaces, quotes and control characters, and never like an option. */
function addressOf(url: string): string | undefined {
  const address = URL.parse(url)
  if (address === null || address.username !== '' || address.password !== '') return undefined
  const { protocol, hostname, href } = address
  const isHere = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isHere) ? href : undefined
}

function run({ command, args }: PagePlan & { kind: 'run' }, platform: PagePlatform): Promise<OpenedPage> {
  const child = platform.spawn({ command, args, env: browserEnvironment(platform) })
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})
  child.stdin.end()
  child.stdout.resume()
  child.stderr.resume()
  // It may become the browser: it keeps nobody from ending.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) (handle as { unref?: () => void }).unref?.()
  return new Promise((resolve) => {
    const settle = (page: OpenedPage): void => {
      platform.clearTimer(timer)
      resolve(page)
    }
    const timer = platform.setTimer(() => resolve({ kind: 'opened' }), OPENER_WAIT_MS)
    child.once('error', (error) => settle(notStarted(command, error)))
    child.once('exit', (code, signal) => {
      if (code === 0) return settle({ kind: 'opened' })
      settle({
        kind: 'not-opened',
        because: `"${command}" ended ${code === null ? `by ${signal}` : `with code ${code}`}`,
      })
    })
  })
}

function notStarted(command: string, error: NodeJS.ErrnoException): OpenedPage {
  const why = error.code === 'ENOENT' ? 'is not there' : `could not be started (${error.code ?? error.message})`
  return { kind: 'not-opened', because: `"${command}" ${why}` }
}

function browserEnvironment({ env, os }: PagePlatform): Record<string, string> {
  const names = os === 'win32' ? WINDOWS_NAMES : UNIX_NAMES
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value !== undefined && names.test(name) ? [[name, value]] : [])),
  )
}
