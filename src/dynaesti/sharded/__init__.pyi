from .executors import DaskExecutor as DaskExecutor, Executor as Executor, ThreadExecutor as ThreadExecutor, cluster as cluster
from .fit import ShardedFit as ShardedFit
from .prepare_shards import prepare as prepare
from .run_file import load_sharded as load_sharded, open_sharded as open_sharded
from .shards import Shards as Shards, is_shards as is_shards
from .simulate import simulate_shards as simulate_shards
from .source import ResponsesInShards as ResponsesInShards
