import type { Requirement } from './requirement.ts'

const one = (number: number, text: string, source: string): Requirement => ({
  id: `plugin.${String(number).padStart(3, '0')}`,
  text,
  milestone: 4,
  source,
})

/** What hosted plugins do, by subject. */
const rules: readonly Requirement[] = [
  one(
    1,
    'hosted plugins are looked at as the first work of a turn, with the servers up to date, only where there is a provider and plugins are on; otherwise nothing is needed',
    '02 §10 phase selection',
  ),
  one(
    2,
    'switching plugins off takes their catalog away at once and asks nobody; switching them on asks at once, whatever failed before',
    '02 §10 config',
  ),
  one(3, 'computing what is contributed asks no provider and changes no catalog', '02 §10 config'),
  one(
    4,
    'when the account changes, the catalog is gone before anything is waited for, and nobody is asked until the next turn',
    '02 §10 account change',
  ),
  one(
    5,
    'refreshes of a thread run one at a time; those that waited for one that succeeded share its answer, and one that goes away disturbs nobody',
    '02 §10 serialisation 1, 2',
  ),
  one(
    6,
    'those that waited for a refresh that failed do not ask, and after exactly 30 s the next one does',
    '02 §10 serialisation 3',
  ),
  one(
    7,
    'a refresh that is cancelled lets the next one ask at once, and leaves no wait behind',
    '02 §10 serialisation 4',
  ),
  one(8, 'one turn asks once, however many steps it has', '02 §10 serialisation 5'),
  one(
    9,
    'a failure for the same account keeps the catalog, changes nothing, and is not repeated while its wait lasts',
    '02 §10 serialisation 6',
  ),
  one(
    10,
    'resources that appear are another account: a failure then takes the catalog away and says so, once',
    '02 §10 serialisation 7',
  ),
  one(
    11,
    'the first 100 hosted plugins that are on are shown, and those that are off or elsewhere take no place',
    '02 §10 projection limits',
  ),
  one(
    12,
    'of the connectors of a plugin each counts once, in the order of their naming, and the first 64 are kept',
    '02 §10 projection limits',
  ),
  one(
    13,
    'names of plugins are one line of at most 64 code points without backticks and invisible characters',
    '02 §10 projection limits, §11',
  ),
  one(
    14,
    'a partial answer with plugins never replaces a complete one, an empty partial one always does, and nothing is ever put together from two answers',
    '00 decision 4',
  ),
  one(
    15,
    'the wait after failures is 30 s, doubles up to 5 min for the same account and connection, and is over at exactly its end',
    '00 decision 5',
  ),
  one(16, 'two threads share neither lock nor wait nor catalog', '02 §10 add these'),
  one(17, 'an abort ends a refresh at every wait at once, and the provider hears of it', '02 §10 add these'),
  one(
    18,
    'a provider that throws, answers something else, or takes longer than 10 s has failed like any other',
    '02 §10 add these',
  ),
  one(19, 'what comes after the thread has ended is ignored', '02 §10 add these'),
  one(20, 'a connector that two plugins use names both of them', '02 §10 add these'),
  one(21, 'a server that is not hosted gets no plugin by claiming a connector', '02 §10 add these'),
  one(
    22,
    'an answer for an account that is not that of now, or for plugins that were switched off meanwhile, is refused: nothing is accepted and no wait begins',
    '02 §3.2, §3.4',
  ),
  one(
    23,
    'warnings of a catalog are told once per text, a failure never in the words of the provider, and what happened is counted',
    '02 §11',
  ),
  one(
    24,
    'entries that are malformed or over a limit are left out before anything is kept, and the catalog is partial then',
    '02 §11',
  ),
  one(
    25,
    'hosted plugins are read from the resources of the apps server in both spellings; without that server there are none',
    '02 §8, 00 decision 42',
  ),
  one(
    26,
    'a listing ends after 10 pages, 100 plugins, 9.5 s, a repeated cursor or a page that fails, and is partial then; without its first page it has failed',
    '02 §8',
  ),
  one(27, 'addresses of plugins count only in their canonical form, with the id of the plugin as their host', '02 §8'),
  one(28, 'a bad address of a bundle is a warning, and the catalog stays complete', '02 §8'),
  one(
    29,
    'a connector is off when its own plugin is, or when every plugin that names it is; blank ids are nobody’s',
    '02 §4.3',
  ),
  one(
    30,
    'plugins of an account are shown in the thread and named on the tools of their connectors, and switching them off takes both away',
    '02 §10 projection',
  ),
]

/** The life of one thread, turn by turn: the table of 02 §3.7. */
const rows: readonly Requirement[] = [
  one(101, 'initial-partial: a partial catalog is shown where nothing was published yet', '02 §3.7 row 1'),
  one(102, 'partial-replaces-partial: a partial catalog replaces a partial one whole', '02 §3.7 row 2'),
  one(
    103,
    'partial-empty-replaces-partial: an empty partial catalog with a warning replaces a partial one',
    '02 §3.7 row 3',
  ),
  one(104, 'empty: a complete empty catalog is an answer, and tools stay callable without plugins', '02 §3.7 row 4'),
  one(105, 'partial-after-complete-empty: a partial catalog adds nothing to a complete empty one', '02 §3.7 row 5'),
  one(106, 'discovered: a complete catalog shows its plugin and names it on its tools', '02 §3.7 row 6'),
  one(
    107,
    'partial-refresh: a partial catalog takes nothing from a complete one, and the turn does not ask again',
    '02 §3.7 row 7',
  ),
  one(108, 'partial-empty-refresh: an empty partial catalog hides all plugins', '02 §3.7 row 8'),
  one(109, 'same-account-failure: a failure keeps what is there', '02 §3.7 row 9'),
  one(
    110,
    'complete-with-warning-disables-plugin: a new connection ends the wait, and a plugin that is off is not shown; a warning makes nothing partial',
    '02 §3.7 row 10',
  ),
  one(
    111,
    'partial-after-disable: a partial catalog does not bring another plugin in for one that is off',
    '02 §3.7 row 11',
  ),
  one(112, 're-enabled: a plugin that is on again is shown', '02 §3.7 row 12'),
  one(113, 'removed: a plugin that is not listed any more is gone', '02 §3.7 row 13'),
  one(114, 'restored: a plugin that is listed again is shown', '02 §3.7 row 14'),
  one(
    115,
    'auth-changed-failure: another account hides everything before anybody asks, and a failure then shows nothing',
    '02 §3.7 row 15',
  ),
  one(
    116,
    'new-account-partial: a partial catalog is shown for the new account, whose tools alone are there',
    '02 §3.7 row 16',
  ),
  one(117, 'new-account-discovered: a complete catalog of the new account is shown', '02 §3.7 row 17'),
  one(
    118,
    'in-flight-auth-change: an answer for the old token is refused, the step asks again, and its failure shows nothing',
    '02 §3.7 row 18',
  ),
]

export const plugins: readonly Requirement[] = [...rules, ...rows]
