// Screens of terminals drawn on this thread.
import { fileURLToPath } from 'node:url';
import { agentRules } from '../../src/actors/service/agent_rules.ts';
import type { ScreenJobs } from '../../src/actors/service/logged_screen.ts';
import { StateDrawings } from '../../src/actors/service/state_drawings.ts';
import type { StateScreens } from '../../src/actors/service/state_screen.ts';
import { loadRules } from '../../src/adapters/screen_rules_file.ts';
import { readState } from '../../src/adapters/screen_state.ts';
import { drawScreen, readScreen } from '../../src/adapters/terminal_screen.ts';
import type { Clock } from '../../src/runtime/actor.ts';
import { agentRulesUrl } from '../../src/settings/build_paths.ts';

export const screensHere: ScreenJobs = {
  draw: async (prepare) => drawScreen(prepare()),
  read: async (prepare) => readScreen(prepare()),
};

const OWN_RULES = fileURLToPath(agentRulesUrl());

/** States read on this thread, by the rules of Berth and those in `folder`. */
export const statesHere = (clock: Clock, folder = '/nonexistent'): StateScreens => ({
  read: async (prepare) => readState(prepare()),
  drawings: new StateDrawings(clock),
  rules: agentRules({ load: () => loadRules({ folders: [folder, OWN_RULES] }), clock, report: () => {} }),
});
