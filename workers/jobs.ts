// The functions of the job pool, one per row.
import { hashInputs } from '../src/adapters/input_hash.ts';
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { loadRules } from '../src/adapters/screen_rules_file.ts';
import { readState } from '../src/adapters/screen_state.ts';
import { drawScreen, readScreen } from '../src/adapters/terminal_screen.ts';
import { serveJobs } from '../src/daemon/job_pool.ts';
import { searchLogs } from '../src/logs/log_search.ts';
import { readMergedLogs, startMergedLogs } from '../src/logs/log_stream.ts';

export default serveJobs({
  hashInputs,
  parseKubeconfig: ({ upload, now }) => parseKubeconfig(upload, now),
  drawScreen,
  loadRules,
  readScreen,
  readState,
  searchLogs,
  startMergedLogs,
  readMergedLogs,
});
