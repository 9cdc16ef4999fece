"""Who hears whom, with which weights: graphs, W, and links that fail or vary."""

from proxgt.networks.links import Outage, unreliable, varying
from proxgt.networks.network import Network

__all__ = ["Network", "Outage", "unreliable", "varying"]
